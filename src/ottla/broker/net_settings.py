"""The network's limits, as the settings have them."""

from __future__ import annotations

from ottla.broker.memory_shares import memory_shares
from ottla.config.broker import BrokerConfig
from ottla.config.listeners import Listeners
from ottla.net.limits import NetLimits


def net_limits(config: BrokerConfig, machine_bytes: int) -> NetLimits:
    """`machine_bytes` is what bounds are derived from that are not set."""
    memory = memory_shares(config, machine_bytes)
    listeners = Listeners.of(config)
    return NetLimits(
        socket_request_max_bytes=config.socket_request_max_bytes,
        socket_send_buffer_bytes=config.socket_send_buffer_bytes,
        socket_receive_buffer_bytes=config.socket_receive_buffer_bytes,
        socket_listen_backlog_size=config.socket_listen_backlog_size,
        queued_max_requests=config.queued_max_requests,
        queued_max_request_bytes=memory.requests,
        reply_memory_bytes=memory.replies,
        max_inflight_requests_per_connection=config.max_inflight_requests_per_connection,
        connections_max_idle_ms=config.connections_max_idle_ms,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides=config.connections_per_ip_overrides,
        listener_max_connections=config.of_listeners.max_connections,
        max_connection_creation_rate=config.max_connection_creation_rate,
        listener_max_connection_creation_rate=config.of_listeners.max_connection_creation_rate,
        protected_listener=listeners.inter_broker if len(listeners.bound) > 1 else None,
    )
