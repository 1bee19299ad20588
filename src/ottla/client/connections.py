"""Connections by broker, and the choice of one where any broker will do.

Owns: the connections, by broker and lane. Never sends a request.

A lane is a connection of its own to the same broker: a request that waits at the broker, such as
a fetch, must not delay a heartbeat behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from random import Random

from ottla.client.broker_connection import BrokerConnection, ClientSecurity
from ottla.client.cluster_view import Node
from ottla.config.client import ClientConfig
from ottla.model.clock import Clock


class ConnectionLane(Enum):
    """Which of the connections to a broker."""

    DATA = "data"
    MORE_DATA = "more data"  # a second fetch, where replies are large
    COORDINATION = "coordination"
    JOIN = "join"  # a group's coordinator keeps it waiting until all have joined


class Connections:
    """Every connection of one client."""

    def __init__(self, config: ClientConfig, clock: Clock, dice: Random) -> None:
        self._config = config
        self._clock = clock
        self._dice = dice
        self._security = ClientSecurity.of(config, clock)
        self._links: dict[tuple[int, ConnectionLane], BrokerConnection] = {}
        # Bootstrap servers have negative ids until metadata gives the real ones.
        self._bootstrap = {
            -1 - index: Node(-1 - index, address.host, address.port)
            for index, address in enumerate(config.addresses)
        }

    def to(self, node: Node, lane: ConnectionLane = ConnectionLane.DATA) -> BrokerConnection:
        """The connection of a broker; a new one if its address has changed."""
        link = self._links.get((node.id, lane))
        if link is not None and link.node[1:3] == node[1:3]:
            return link
        if link is not None:
            link.peer.close()
        self._drop_idle()
        link = self._links[node.id, lane] = BrokerConnection(
            node, self._config, self._clock, self._dice, self._security
        )
        return link

    def any(self, nodes: Mapping[int, Node]) -> Iterator[BrokerConnection]:
        """Connections to try when any broker will do, the best first.

        Order: not in reconnect backoff, connected, fewest requests in flight. The bootstrap servers
        come last, if all others fail.
        """
        now_ms = self._clock.mono_ms()

        def rank(link: BrokerConnection) -> tuple[bool, bool, int, float]:
            peer = link.peer
            waits = peer.not_before_ms > now_ms
            return waits, not peer.is_ready, peer.in_flight, self._dice.random()

        links = sorted((self.to(node) for node in nodes.values()), key=rank)
        yield from links
        if not links or all(link.peer.not_before_ms for link in links):
            yield from sorted((self.to(node) for node in self._bootstrap.values()), key=rank)

    def close(self) -> None:
        for link in self._links.values():
            link.peer.close()
        self._links.clear()

    def forget_bootstrap(self) -> None:
        """Close idle connections to bootstrap servers: the brokers' real ids are known now."""
        for key in [key for key in self._links if key[0] < 0]:
            link = self._links[key]
            if not link.peer.in_flight:
                link.peer.close()
                del self._links[key]

    def _drop_idle(self) -> None:
        idle_ms = self._config.connections_max_idle_ms
        if idle_ms < 0:
            return
        now_ms = self._clock.mono_ms()
        for link in self._links.values():
            if link.peer.is_open and not link.peer.in_flight and now_ms - link.used_ms > idle_ms:
                link.peer.hang_up()
