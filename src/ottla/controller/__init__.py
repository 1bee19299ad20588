"""The controller: one active broker decides the leader of each partition.

Decisions are pure functions of state and event; `runtime/` performs them. May import `replica` and
the layers below it; never `api`, never a coordinator.

- `controller`         the interface that the rest of the broker uses
- `state`              brokers, topics, partitions, and the tables of legal state changes
- `events`             everything that can happen
- `effects`            everything an event may lead to: store writes, requests, replies
- `machine`            event -> the function that handles it
- `draft`              the working copy of the state while one event is handled
- `request_batch`      the requests of one event, grouped by broker
- `startup`            the first event after winning the election
- `brokers`            brokers that join, leave or change; failed log directories
- `lost_disks`         brokers that came back without log directories they had
- `topics`             new topics and partitions
- `topic_rules`        topic names, partition counts and assignments that are allowed
- `placement`          replica placement
- `deletion`           topic deletion
- `election`           leader election: the four strategies
- `election_requests`  elections requested by operators, or by leader balancing
- `reassignment`       partition reassignment
- `isr_changes`        in-sync sets written by leaders
- `partitions`         the partition state machine
- `replicas`           the replica state machine
- `store_operations`   the controller's writes, as store operations
- `event_size`         how many partitions an event concerns
- `runtime/`           the loop, and everything that reads, writes and sends
"""
