"""The metadata tree of a cluster: small versioned nodes, ephemerals, watches, atomic writes.

ZooKeeper's model with Kafka's paths. Nothing above knows which home the tree has. May import
`model`.

- `port`        what a store is: calls, errors, sessions
- `paths`       where things are kept
- `nodes`       what is kept there: Kafka's JSON, both ways
- `acl_nodes`   access rules among them
- `watches`     a fired watch turned into a typed change
- `tree`        the tree itself and drafts over it; pure
- `watching`    one-shot watches of one session
- `memory`      one tree shared by several sessions in one process: simulation and tests
- `embedded`    the tree in a SQLite file inside the broker: the home of a single node
- `database`    that file: what is in it, how it is opened and written
- `zookeeper`   the tree on a ZooKeeper ensemble: the home of a cluster
"""
