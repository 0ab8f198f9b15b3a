"""The engine: open a run folder, rehearse, train, finish, load; it asks the task and knows no kind of job."""
