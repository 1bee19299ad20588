"""Groups: their members, their generations and their committed offsets.

The coordinator of a group is the broker that leads the partition of `__consumer_offsets` the
group's id hashes to; that partition also holds everything about it that must outlive a broker.

- `phases`        the states of a group, and the legal moves between them
- `member`        one member, and what a join or a sync is answered
- `classic`       one group: members, votes, leader, generation
- `subscription`  what a consumer's metadata says it subscribes to
- `draft`         records and timers collected while a decision is made
- `limits`        the settings groups are run by
- `memory`        what the members of all groups take of the memory, and whether one more may come
- `joining`       JoinGroup
- `rebalance`     from a change of members to the next generation
- `syncing`       SyncGroup
- `liveness`      heartbeats, leaving, members that are not heard of
- `offsets`       committed offsets: kept, pending in a transaction, read
- `bulk`          offsets replayed many at a time
- `committing`    OffsetCommit, OffsetDelete
- `expiry`        offsets and groups that have been left behind
- `measures`      what is counted, and under which names it is shown
- `overview`      groups as tools see them, and their deletion
- `records`       what is persisted, in Kafka's own formats
- `shard`         one partition's groups: replay, loading, timers
- `service`       the asynchronous face
- `consumer/`     the consumer protocol: groups whose partitions we share out
"""
