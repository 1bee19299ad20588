"""`ottla pipeline …`: jobs on Spark, each described by one file.

- `run`        run a file's queries
- `validate`   check a file without running it
- `new`, `list_templates`   example files
- `replay_dlq` send dead letters back to the topic they came from
- `report`     a chart of throughput and lag
- `options`    the argument and option that name a file and override its values
- `display`    prints progress while a pipeline runs
"""
