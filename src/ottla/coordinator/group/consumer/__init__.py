"""Groups of the consumer protocol (KIP-848): the coordinator assigns the partitions.

A member sends its subscription and its owned partitions in every heartbeat, and receives what it
may own. When members, subscriptions or topics change, the group epoch grows and a new target
assignment is computed; each member then converges to it on its own, and receives no partition that
another member has not revoked. Members that speak the classic protocol take part as well.

- `topic_partitions`    partitions by topic id, and sets of them
- `member`              one member: its subscription and its state
- `group`               one group: members, target assignment, epochs; changed by its records alone
- `records`             what is persisted, in Kafka's own formats
- `reconciliation`      a member's next assignment on the way to its target
- `assignors`           the assignors by name
- `pending_group`       a group with the records drafted so far applied
- `heartbeat`           ConsumerGroupHeartbeat
- `classic_metadata`    the metadata and assignments of classic consumers
- `classic_members`     JoinGroup, SyncGroup, Heartbeat and LeaveGroup in such a group
- `migration`           from the classic protocol, and back
- `timers`              the timers of a member
- `protocol`            every request and timer of the protocol
- `service`             the asynchronous interface for API handlers
"""
