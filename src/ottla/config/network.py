"""Settings of listeners, connections and requests."""

from typing import Annotated, Final

from ottla.config.settings import (
    INT_MAX,
    AtLeast,
    Doc,
    Dynamic,
    Long,
    NoEffect,
    OneOf,
    Settings,
    Type,
    Words,
)

DEFAULT_PROTOCOLS = ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT",
                     "SASL_SSL:SASL_SSL")  # fmt: skip

_BY_KIND: Final = NoEffect("controller and followers have their own socket timeouts")
_FIXED_TIMEOUT: Final = NoEffect("each attempt to connect has 10 seconds")


class NetworkSettings(Settings):
    listeners: Annotated[
        Words,
        Dynamic("broker"),
        Doc("Addresses to listen on, name://host:port; port 0 takes a free one."),
    ] = ("PLAINTEXT://:9092",)
    advertised_listeners: Annotated[
        Words | None,
        Doc("Addresses published to clients and brokers; `listeners` when not set."),
    ] = None
    listener_security_protocol_map: Annotated[
        Words,
        Type.STRING,  # Kafka's type; it is read as a list
        Dynamic("broker"),
        Doc("The security protocol of each listener name."),
    ] = DEFAULT_PROTOCOLS
    inter_broker_listener_name: Annotated[
        str | None, Doc("The listener for connections between brokers.")
    ] = None
    security_inter_broker_protocol: Annotated[
        str,
        OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        Doc("Picks the inter-broker listener by protocol when no name is given."),
    ] = "PLAINTEXT"
    control_plane_listener_name: Annotated[
        str | None, Doc("A listener reserved for the controller's requests, which go first.")
    ] = None

    socket_send_buffer_bytes: Annotated[
        int, AtLeast(1, (-1,)), Doc("SO_SNDBUF of accepted sockets; -1 leaves the system's.")
    ] = 102_400
    socket_receive_buffer_bytes: Annotated[
        int, AtLeast(1, (-1,)), Doc("SO_RCVBUF of accepted sockets; -1 leaves the system's.")
    ] = -1  # not Kafka's: docs/decisions/0013
    socket_request_max_bytes: Annotated[
        int, AtLeast(1), Doc("Largest request accepted; a larger one closes the connection.")
    ] = 104_857_600
    socket_listen_backlog_size: Annotated[
        int, AtLeast(1), Doc("Backlog of connections that are not accepted yet.")
    ] = 50

    max_connections: Annotated[
        int,
        AtLeast(0),
        Dynamic("cluster"),
        Doc("Most connections to this broker, or, after listener.name.<name>., to a listener."),
    ] = INT_MAX
    max_connection_creation_rate: Annotated[
        int,
        AtLeast(0),
        Dynamic("cluster"),
        Doc("New connections a second, to the broker or a listener; more have to wait."),
    ] = INT_MAX
    max_connections_per_ip: Annotated[
        int, AtLeast(0), Dynamic("cluster"), Doc("Most connections from one address.")
    ] = INT_MAX
    max_connections_per_ip_overrides: Annotated[
        str,
        Dynamic("cluster"),
        Doc("Other limits for some addresses: host:count, comma-separated."),
    ] = ""
    connections_max_idle_ms: Annotated[
        Long, AtLeast(1, (-1,)), Doc("A connection idle for longer is closed; -1 never.")
    ] = 600_000
    connection_failed_authentication_delay_ms: Annotated[
        int,
        AtLeast(0),
        Doc("Wait before a failed login is answered."),
    ] = 100

    queued_max_requests: Annotated[
        int, AtLeast(1), Doc("Requests waiting to be handled; when full, reading stops.")
    ] = 500
    queued_max_request_bytes: Annotated[
        Long,
        AtLeast(1, (-1,)),
        Doc("Bytes of requests; beyond, reading stops. -1: derived from memory.limit.bytes."),
    ] = -1
    memory_limit_bytes: Annotated[
        Long,
        AtLeast(64 << 20, (-1,)),
        Doc("Ours. Memory that bounds are derived from; -1: the machine's or control group's."),
    ] = -1
    max_inflight_requests_per_connection: Annotated[
        int,
        AtLeast(1),
        Doc("Ours. Unanswered requests of one connection; at the limit, reading it stops."),
    ] = 100
    num_network_threads: Annotated[
        int,
        AtLeast(1),
        Dynamic("cluster"),
        Doc("Threads that read and write sockets."),
        NoEffect("one event loop reads and writes"),
    ] = 3
    num_io_threads: Annotated[
        int,
        AtLeast(1),
        Dynamic("cluster"),
        Doc("Threads that handle requests."),
        NoEffect("one event loop handles them"),
    ] = 8
    background_threads: Annotated[
        int,
        AtLeast(1),
        Dynamic("cluster"),
        Doc("Threads for blocking work: flush, recovery, recompression."),
        NoEffect("there are always four"),
    ] = 10
    request_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Longest wait for another broker's reply."), _BY_KIND
    ] = 30_000
    socket_connection_setup_timeout_ms: Annotated[
        Long, AtLeast(1), Doc("Longest wait for a connection to another broker."), _FIXED_TIMEOUT
    ] = 10_000
    socket_connection_setup_timeout_max_ms: Annotated[
        Long, AtLeast(1), Doc("Ceiling of that wait after repeated failures."), _FIXED_TIMEOUT
    ] = 30_000

    fetch_max_bytes: Annotated[int, AtLeast(1024), Doc("Most bytes one fetch reply carries.")] = (
        57_671_680
    )
    max_incremental_fetch_session_cache_slots: Annotated[
        int, AtLeast(0), Doc("Incremental fetch sessions kept.")
    ] = 1_000
    max_request_partition_size_limit: Annotated[
        int, AtLeast(1), Doc("Most partitions one DescribeTopicPartitions reply lists.")
    ] = 2_000
    fetch_purgatory_purge_interval_requests: Annotated[
        int, AtLeast(1), Doc("Completed fetches that may linger before a purge.")
    ] = 1_000
    producer_purgatory_purge_interval_requests: Annotated[
        int, AtLeast(1), Doc("Completed produce requests that may linger before a purge.")
    ] = 1_000
    delete_records_purgatory_purge_interval_requests: Annotated[
        int, AtLeast(1), Doc("Completed delete-records requests that may linger before a purge.")
    ] = 1
    metrics_port: Annotated[
        int | None,
        AtLeast(0),
        Doc("Ours. Port of the Prometheus page; 0 takes a free one, not set: none."),
    ] = None
    metrics_host: Annotated[
        str | None,
        Doc("Ours. Address of the Prometheus page; not set: the host of the first listener."),
    ] = None
