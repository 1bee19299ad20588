"""HTTP for programs without a Kafka client: `ottla gateway`.

Speaks version 2 of the API of Confluent's REST Proxy. Uses the asynchronous clients and nothing of
a broker. The layers, each above the next:

- `gateway`            a whole gateway: clients, instances and server, opened and closed in order
- `server`             the listening socket, and how many connections there are
- `connection`         one connection: bytes to requests by h11, replies to bytes
- `browser_guard`      refuses what web pages of other sites send (pure)
- `dispatch`           the table of paths, and what errors become
- `topics`             handlers of topics, partitions and brokers
- `produce`            handlers that produce
- `consumers`          handlers of consumer instances
- `services`           what handlers use, and what they are called with
- `instances`          all consumer instances: their tasks and their expiry
- `group_consumer`     one instance: a consumer that requests read through
- `instance_table`     names and last uses of instances (pure)
- `consumer_requests`  the fields of requests to consumers (pure)
- `record_formats`     keys and values as base64 or JSON (pure)
- `routes`             matches paths (pure)
- `http_messages`      a request and a reply as values (pure)
- `json_fields`        typed fields of JSON objects (pure)
- `media_types`        Content-Type and Accept (pure)
- `limits`             how much a gateway holds, and how long it waits
- `errors`             refusals with the API's codes
"""
