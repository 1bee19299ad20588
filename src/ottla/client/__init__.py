"""Clients: a producer, a consumer and an admin client over one asynchronous core.

May import `config`, `net`, `protocol`, `model` and the words of `security.acl`; never the broker.
Works against Apache Kafka as well as against Ottla.

- `cluster`            shared by the clients: metadata, routing, one request to one broker
- `cluster_view`       the cluster as last seen (pure)
- `metadata`           metadata requests; concurrent callers share one
- `connections`        connections by broker, and the choice of the least loaded
- `broker_connection`  one broker: its connection, the API versions it supports
- `coordinators`       the coordinator of a group or a transactional id
- `retry`              which errors are retried, with what backoff and deadline
- `errors`             the exceptions that users catch
- `offsets`            offsets with metadata or a timestamp
- `loop_thread`        an event loop on a thread of its own, for the synchronous clients
- `serializers`        keys and values to bytes and back
- `partitioners`       the partition of a record
- `interceptors`       producer interceptors
- `producer/`, `consumer/`, `admin/`: the clients
"""
