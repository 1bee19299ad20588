"""`ottla pipeline …`: jobs on Spark, each described by one file.

- `run`        run a file's queries
- `validate`   find what is wrong with a file, without running it
- `new`, `list_templates`   files to begin with
- `replay_dlq` send dead letters back to where they came from
- `report`     a picture of what a pipeline has done
- `load`       a file as a pipeline
- `display`    what people see while one runs
"""
