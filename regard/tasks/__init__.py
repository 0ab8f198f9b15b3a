"""One file a job: what a run is for, what it reads, builds and makes small, what it answers, how it is judged."""
