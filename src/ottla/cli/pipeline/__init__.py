"""`ottla pipeline …`: jobs on Spark, each described by one file.

- `run`        run a file's queries
- `backfill`   a part of the topics once more, into the same sinks
- `background_runs` status, stop and logs of runs in the background
- `validate`   check a file without running it
- `plan`       what a run would read
- `try_`       the steps on a sample of real records
- `commands`   `new`, `list-templates`: example files; `schema`: their JSON Schema; `test`: the
               steps on the records of a file of tests; `report`: a chart of throughput and lag
- `replay_dlq` send dead letters back to the topic they came from
- `options`    the argument and option that name a file and override its values
- `display`    prints progress while a pipeline runs
"""
