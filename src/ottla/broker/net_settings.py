"""The network's limits, as the settings have them."""

from __future__ import annotations

from ottla.config.broker import BrokerConfig
from ottla.net.limits import NetLimits


def net_limits(config: BrokerConfig) -> NetLimits:
    return NetLimits(
        socket_request_max_bytes=config.socket_request_max_bytes,
        socket_send_buffer_bytes=config.socket_send_buffer_bytes,
        socket_receive_buffer_bytes=config.socket_receive_buffer_bytes,
        socket_listen_backlog_size=config.socket_listen_backlog_size,
        queued_max_requests=config.queued_max_requests,
        queued_max_request_bytes=config.queued_max_request_bytes,
        max_inflight_requests_per_connection=config.max_inflight_requests_per_connection,
        connections_max_idle_ms=config.connections_max_idle_ms,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides=config.connections_per_ip_overrides,
    )
