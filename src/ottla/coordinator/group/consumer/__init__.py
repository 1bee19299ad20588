"""Groups whose coordinator shares out the partitions: the consumer protocol.

A member says in every heartbeat what it subscribes to and what it holds, and hears what it may
hold. Whenever members, subscriptions or topics change, the group's epoch grows and a new target
is worked out; each member then moves towards it on its own, and gets nothing that another has not
given up. Members that still speak the classic protocol take part through their own requests.

- `parts`       partitions by topic id, and sets of them
- `member`      one member: what it says of itself, and how it stands
- `group`       one group: members, target, epochs; changed by its records alone
- `records`     what is persisted, in Kafka's own formats
- `reconcile`   from what a member holds towards its target
- `range`       the assignor of stretches, topic by topic
- `uniform`     the assignor of even shares that move as little as they can
- `assignors`   the assignors by name
- `revision`    a group as it will be: records drafted, epoch raised, target made
- `patterns`    regular expressions, and the topics they stand for
- `heartbeat`   ConsumerGroupHeartbeat
- `leaving`     members that leave, or are not heard of
- `embedded`    what classic consumers say inside their metadata
- `classic_members`  JoinGroup, SyncGroup, Heartbeat and LeaveGroup in such a group
- `migration`   from the classic protocol, and back
- `offsets`     who may commit and fetch offsets
- `overview`    such groups as tools see them
- `timing`      what runs for a member
- `protocol`    every request and timer, in one place
- `service`     the asynchronous face
"""
