"""`ottla pipeline …`: jobs on Spark, each described by one file.

- `run`        run a file's queries
- `background_runs` status, stop and logs of runs in the background
- `validate`   check a file without running it
- `plan`       what a run would read
- `test`       the steps on the records of a file of tests
- `try_`       the steps on a sample of real records
- `new`, `list_templates`   example files
- `replay_dlq` send dead letters back to the topic they came from
- `report`     a chart of throughput and lag
- `options`    the argument and option that name a file and override its values
- `display`    prints progress while a pipeline runs
"""
