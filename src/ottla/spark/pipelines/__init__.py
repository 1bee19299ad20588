"""Pipelines: one file says what is read, what happens to it and where it goes.

- `yaml_file`    a YAML file as a `Pipeline`: names, defaults, and an error that says where; pure
- `spec`         what a pipeline is made of; plain values
- `sinks`        what a file says of its sinks; pure
- `yaml_node`    one place in a file, and the questions asked of it; pure
- `formats`      bytes of a topic as columns, and what did not fit
- `avro`, `protobuf`  two such formats, decoded by `worker_decoding`
- `views`        sources and steps as Spark's views
- `dead_letters` rows that were refused, with reason and origin; and back again (`replay`)
- `queries`      what becomes of a view: one streaming query for each sink
- `lake`         tables in a lake, without a jar: of `delta` or of `iceberg`
- `session`      the Spark session a pipeline runs in, and the `java` it runs on
- `running_queries` queries started, watched and stopped
- `progress`     what a query has done, as rows, as a line, as a summary; pure
- `topic_ends`   how far topics could be read, for the lag
- `metrics`      the same for Prometheus
- `report`       the same as a picture
- `group_sync`   consumer groups that can go on at a mirror
- `templates`    ready-made files

May import the rest of `ottla.spark` and the client. Importing it imports no pyspark.
"""
