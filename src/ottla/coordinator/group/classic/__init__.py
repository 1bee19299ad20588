"""Groups of the classic protocol: the members' leader assigns the partitions.

- `states`        the states of a group, and the legal moves between them
- `group`         one group: members, protocol votes, leader, generation
- `member`        one member, and the replies to its join and sync
- `subscription`  the topics in a consumer's metadata
- `join`          JoinGroup
- `rebalance`     from a change of members to the next generation
- `sync`          SyncGroup
- `heartbeat`     Heartbeat, LeaveGroup, session timeouts
"""
