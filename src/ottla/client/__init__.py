"""Clients: a producer, a consumer and an admin client over one asynchronous core.

May import `config`, `net`, `protocol`, `model` and the words of `security.acl`; never the broker.
Works against Apache Kafka as well as against Ottla.

- `cluster`      what the clients share: who leads what, one question to one broker
- `view`         the cluster as last heard of (pure)
- `metadata`     asking for it, so that all who want to know ask once
- `links`        connections by broker, the least loaded of them
- `link`         one broker: its connection, the versions it speaks
- `versions`     which version of an API both sides speak (pure)
- `coordinators` which broker looks after a group or a transactional id
- `retry`        what may be tried again, when, and until when (pure but for one loop)
- `errors`       the exceptions a user meets
- `offsets`      offsets as users name them
- `thread`       an event loop on a thread of its own, for the synchronous faces
- `serializers`  keys and values to bytes and back
- `partitioners` which partition a record goes to
- `interceptors` callables that see every record
- `producer/`, `consumer/`, `admin/`: the clients
"""
