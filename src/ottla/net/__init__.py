"""The network: frames in, replies out, in order, bounded. It does not interpret them.

- `listener`            one endpoint: opens, stops gracefully
- `acceptor`            takes new connections, a few in each pass of the loop
- `channel`             one accepted connection on the event loop
- `connection`          requests in order, replies in order, in-flight limit (pure)
- `request_slot`        one request's place among the replies; the peer that sent it
- `frame_reader`, `buffers`   bytes to frames in place (pure); the memory they are read into
- `reply_writer`, `transports`   replies to bytes; sockets and files they are sent through
- `run_queue`           which connection runs next; the control plane first
- `network`             what all listeners share: limits, counts, idle connections
- `limits`              the network's limits
- `connection_limits`   connection counts, and whether one more is accepted
- `waiting_connections` connections that wait for a limit; the rate of new ones
- `admission`           memory for requests: what is granted, what waits (pure)
- `error_log`           rate-limited log lines about misbehaving peers
- `request_metrics`     request counts and times
- `outbound_connection` a connection to another broker
- `version_handshake`   which APIs and versions the broker at the other end supports
- `broker_link`         requests from one broker to another
- `reply_reader`        bytes to replies that may be kept (pure)
- `bulk_receiver`       large replies, received by a thread

Imports `model`, and `protocol` for the requests that brokers send. It is handed a clock, a metrics
registry and the request handler.
"""
