"""Producer state of one partition: sequences, epochs, open transactions.

- `producer_states`   the state of every producer of a partition
- `snapshot_file`     the `<offset>.snapshot` file
- `snapshot_loading`  rebuilds producer state from snapshots and the batches after them
- `batch_lookup`      finds a producer's older batches in the log, beyond those a snapshot holds
"""
