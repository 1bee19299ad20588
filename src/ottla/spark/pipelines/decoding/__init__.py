"""Values of a topic as columns.

- `formats`   decodes a source's records, and says of each that does not decode why
- `avro`, `protobuf`  two formats that Spark needs a jar for
- `worker_decoding`   runs their decoders in Arrow functions on the workers
"""
