"""Pipelines: one file says what is read, what happens to it and where it goes.

- `file`         a YAML file as a `Pipeline`: names, defaults, and an error that says where; pure
- `spec`         what a pipeline is made of; plain values
- `nodes`        one place in a file, and the questions asked of it; pure
- `formats`      bytes of a topic as columns, and what did not fit
- `avro`, `protobuf`  two such formats, decoded `on_workers`
- `views`        sources and steps as Spark's views
- `dead_letters` rows that were refused, with reason and origin; and back again (`replay`)
- `outputs`      what becomes of a view: one streaming query for each sink
- `lake`         tables of Delta and Iceberg, without a jar
- `session`      the Spark session a pipeline runs in
- `run`          queries started, watched and stopped
- `progress`     what a query has done, as rows, as a line, as a summary; pure
- `report`       the same as a picture
- `templates`    ready-made files
- `jobs`         pipelines that everybody needs, built from the same parts

May import the rest of `ottla.spark` and the client. Importing it imports no pyspark.
"""
