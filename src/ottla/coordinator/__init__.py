"""State that lives in a topic: groups with their offsets, and transactions.

Records first: a request yields records, a reply and timers; the runtime appends the records, and
only `replay` changes what is kept, for a live request and at loading alike. May import `replica`
and everything below it; never `api` or the controller.

- `outcome`       what a decision yields
- `shard`         what a coordinator's state must offer the runtime
- `partitioning`  which partition of the internal topic a key belongs to
- `loading`       reads a partition of the internal topic back, in turns
- `pending`       what will be known soon, told at once
- `journal`       appends to an internal topic, and waits for the high watermark
- `carrying`      does what a decision asks for: append, replay, set timers
- `runtime`       owns the shards of one internal topic: load, decide, answer
- `patterns`      regular expressions that came over the wire
- `fields`        reading and writing the fields of persisted records
- `group/`        groups, members, committed offsets
- `txn/`          transactional ids and their transactions
"""
