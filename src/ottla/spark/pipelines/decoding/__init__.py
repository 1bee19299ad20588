"""Values of a topic as columns.

- `formats`   decodes a source's records, and says of each that does not decode why
- `avro`, `protobuf`, `json_schema`  formats that Spark needs a jar for, or does not have
- `worker_decoding`   runs their decoders in Arrow functions on the workers
- `numbered`  values that begin with the number of their schema in a registry
- `registry`, `wire_format`  asking a schema registry; the bytes in front of such values
"""
