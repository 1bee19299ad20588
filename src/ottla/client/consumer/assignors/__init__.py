"""The strategies by which a group's leader assigns partitions to members.

All pure: from members, their subscriptions and the number of partitions of each topic to each
member's partitions. Their data is byte for byte what the Java client sends and reads, so that a
group may mix clients.

- `assignor`            the interface of a strategy; range and round-robin
- `sticky`              balanced first, then as few moves as possible
- `cooperative_sticky`  the same in two steps: partitions that stay are never revoked
- `balance`             balances shares with the fewest moves
- `user_data`           user data of the sticky strategies
- `choice`              names and objects of `partition.assignment.strategy`
"""
