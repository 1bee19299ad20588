"""Coordinators: groups with their offsets, and transactions; state kept in internal topics.

Records first: a request yields records, a reply and timers; the runtime appends the records, and
only `replay` changes state, for a live request and at loading alike. May import `replica` and the
layers below it; never `api` or the controller.

- `outcome`              what a decision yields
- `shard`                the interface between a coordinator's state and the runtime
- `runtime`              the shards of one internal topic: load, decide, reply
- `shard_loader`         loads a shard from its partition, in slices
- `executor`             executes a decision: append, replay, set timers
- `internal_topic_log`   appends to an internal topic and waits for the high watermark
- `request_queues`       requests to other brokers, queued by destination
- `deferred_reply`       a reply that is completed later
- `regular_expressions`  regular expressions received from clients
- `record_fields`        reads and writes the fields of persisted records
- `group/`               groups, members, committed offsets
- `txn/`                 transactional ids and their transactions
"""
