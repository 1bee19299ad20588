"""Groups of the classic protocol: the members' leader assigns the partitions.

- `group`         one group: members, protocol votes, leader, generation
- `member`        one member, and the replies to its join and sync
- `join`          JoinGroup
- `rebalance`     from a change of members to the next generation
- `sync`          SyncGroup
- `heartbeat`     Heartbeat, LeaveGroup, session timeouts
"""
