"""Records into batches, on the callers' side of a producer.

- `record_intake`      serializes a record, chooses its partition, appends it to a batch
- `queues`             batches by partition, shared by callers and the sender
- `accumulator`        the sender's side: which batches are ready, and draining them
- `batch`              one batch, from its first record to its result
- `batch_encoder`      a batch to bytes
- `table_writer`       Arrow tables to batches
- `buffer_memory`      `buffer.memory` and the queue for it (pure)
"""
