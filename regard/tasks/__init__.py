"""One file a job: what a run is for, what it reads, builds and minimises, what it answers, how it is scored."""
