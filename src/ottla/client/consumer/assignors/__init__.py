"""Who reads what: the strategies by which a group's leader deals out partitions.

Pure, all of them: members, their subscriptions and how many partitions each topic has go in, each
member's share comes out. What they send and read is byte for byte what the Java client sends and
reads, so that a group may mix clients.

- `assignor`            what a strategy is, and what it is told
- `sticky`              as even as can be, then as few moves as can be
- `cooperative_sticky`  the same in two steps, so that what does not move is never given up
- `claims`              who holds what already, when several say that they do
- `balance`             evening out shares with the fewest moves
- `user_data`           what sticky members tell their leader
- `choice`              names and objects of `partition.assignment.strategy`
"""
