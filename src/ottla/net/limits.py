"""The bounds of the network layer, under the names of the settings they come from.

Owns: the values, frozen. A change at run time replaces the whole record (`Network.apply`).
Never: reads a configuration; the broker fills this in at its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.delay.rates import KAFKAS_WINDOWS, Windows

UNLIMITED: Final = 2**31 - 1

REQUESTS_PER_TURN: Final = 16
"""How many requests one connection may have answered before others get their turn."""

UNSTARTED_MAX: Final = 2
"""How many requests of one connection may wait for their handlers to begin: others come between."""

CONTROL_QUEUE_LIMIT: Final = 20
"""Bound of the control plane's own queue; fixed, as in Kafka."""

UNSENT_PAUSE_BYTES: Final = 1 << 20
"""A connection with more unsent than this is not read from until its peer takes some."""

UNSENT_MAX_BYTES: Final = 16 << 20
"""A connection with more unsent memory than this is closed: its peer does not read."""

UNSENT_STEP_BYTES: Final = 64 << 10
"""Replies that wait for the one to an earlier request are counted in steps of this."""

SEND_TURN_BYTES: Final = 4 << 20
"""How much is sent to one connection before others get their turn."""

LARGE_REPLIES_BYTES: Final = 1 << 20
"""The send buffer of a connection to a follower: a reply of a megabyte leaves in one call and not
in ten, each with a wait for the other side (benchmarks/cluster.py)."""

STALL_GRACE_MS: Final = 30_000
"""How long a started frame may take, before the time its size earns it."""

SLOWEST_BYTES_PER_MS: Final = 16
"""The average rate at which a large frame must arrive after the grace period."""

CONTENDED_GRACE_MS: Final = 5_000
CONTENDED_BYTES_PER_MS: Final = 1_000
"""The same two for a large frame whose memory others wait for; and how long it may be silent."""

MEMORY_WAIT_MAX_MS: Final = 30_000
"""How long a frame may wait for memory; by then its sender has timed out."""

SWEEP_MS: Final = 1_000
"""How often idle and stalled connections are looked for."""

SWEEP_SLICE: Final = 256
SWEEP_SLICE_MS: Final = 50
"""Connections checked at once, and the pause before the next ones, so that replies go first."""


class DescriptorLimits(NamedTuple):
    """What the process has file descriptors for, whatever the settings allow."""

    connections: int = UNLIMITED
    waiting: int = UNLIMITED
    """New connections that wait, of all listeners."""
    brokers: int = 0
    """Connections on the inter-broker listener beyond `connections`."""


NO_DESCRIPTOR_LIMITS: Final = DescriptorLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetLimits:
    """Everything about the network that an operator may set."""

    socket_request_max_bytes: int = 100 << 20
    socket_send_buffer_bytes: int = 102_400
    socket_receive_buffer_bytes: int = -1
    socket_listen_backlog_size: int = 50
    sasl_server_max_receive_size: int = 512 << 10
    """Largest request of a client that is not authenticated."""
    queued_max_requests: int = 500
    queued_max_request_bytes: int = -1
    reply_memory_bytes: int = -1
    max_inflight_requests_per_connection: int = 100
    connections_max_idle_ms: int = 600_000
    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    listener_max_connections: Mapping[str, int] = field(default_factory=dict)
    max_connection_creation_rate: int = UNLIMITED
    listener_max_connection_creation_rate: Mapping[str, int] = field(default_factory=dict)
    quota_windows: Windows = KAFKAS_WINDOWS
    """Over which rates of new connections are measured."""
    descriptors: DescriptorLimits = NO_DESCRIPTOR_LIMITS
    protected_listener: str | None = None
    """The inter-broker listener: max.connections and the broker's rate do not apply to it."""

    def connections_from(self, address: str) -> int:
        return self.max_connections_per_ip_overrides.get(address, self.max_connections_per_ip)

    def connections_to(self, listener: str) -> int:
        return self.listener_max_connections.get(listener, UNLIMITED)

    def creation_rate_of(self, listener: str) -> int:
        return self.listener_max_connection_creation_rate.get(listener, UNLIMITED)
