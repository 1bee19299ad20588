"""The group coordinator: groups, members, committed offsets.

The coordinator of a group is the broker that leads the partition of `__consumer_offsets` that the
group id hashes to; that partition holds the group's persistent state.

- `classic/`           groups of the classic protocol
- `consumer/`          groups of the consumer protocol (KIP-848)
- `draft`              records and timers collected while a decision is made
- `settings`           the settings of groups
- `memory`             memory used by group members, and its limit
- `offsets`            committed offsets, and offsets pending in transactions
- `offset_commit`      OffsetCommit, OffsetDelete
- `offset_replay`      replays many offset commits at a time
- `descriptions`       groups as DescribeGroups and ListGroups show them; deletion
- `metrics`            group coordinator metrics
- `records`            what is persisted, in Kafka's own formats
- `shard`              the groups of one partition: replay, loading, timers
- `service`            the asynchronous interface for API handlers
"""
