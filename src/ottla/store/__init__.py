"""The metadata store: a tree of small versioned nodes, ephemerals, watches, atomic writes.

ZooKeeper's model with Kafka's paths. Nothing above knows which backend is used. May import `model`.

- `port`             what a store is: calls, errors, sessions
- `paths`            Kafka's paths
- `nodes`            the JSON of each node, both ways
- `security_nodes`   the JSON of ACLs and delegation tokens
- `changes`          a fired watch turned into a typed change
- `tree`             the tree itself and drafts over it (pure)
- `watch_registry`   the one-shot watches of one session
- `memory`           one tree shared by several sessions in one process: simulation and tests
- `embedded`         the tree in a SQLite file inside the broker: the backend of a single node
- `sqlite_database`  that file: schema, opening, writing
- `zookeeper`        the tree on a ZooKeeper ensemble: the backend of a cluster
- `zookeeper_connection`  its sockets, its login, the ACLs of its nodes
"""
