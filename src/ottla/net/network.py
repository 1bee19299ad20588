"""What all listeners of one broker share.

Owns: the limits, the open connections, the run queue, the receive buffers, the periodic search for
idle and stalled connections, and the replies that became ready outside their turn.
Never: accepts, reads or writes; `listener` and `channel` do.
"""

from __future__ import annotations

import asyncio
from collections import Counter as CountOf
from collections.abc import Callable, Iterable, Sized
from concurrent.futures import Executor
from typing import Final, Generic, Protocol, TypeVar, cast

from ottla.model.clock import Clock
from ottla.model.metrics import Counter, Labels
from ottla.net.buffers import Buffers
from ottla.net.connection import Connection
from ottla.net.connection_limits import ConnectionCounts, Evictable, least_recently_used
from ottla.net.error_log import PeerErrorLog
from ottla.net.limits import SWEEP_MS, SWEEP_SLICE, SWEEP_SLICE_MS, NetLimits
from ottla.net.request_metrics import UNKNOWN, RequestMetrics
from ottla.net.request_slot import Peer
from ottla.net.run_queue import RunQueue
from ottla.net.tls.connection import TlsResources
from ottla.net.waiting_connections import (
    Admission,
    AdmissionDecision,
    NewConnection,
    WaitingConnections,
)

Owner = TypeVar("Owner")


class ReplyMemory(Generic[Owner]):
    """Memory of replies that clients have not read; says which connection has the most. Pure.

    At most `limit` bytes; below 0: as many as there are. Each connection is paused long before
    this limit (`limits.UNSENT_PAUSE_BYTES`), which is for many connections at once: their replies
    stay in memory until one of them is closed.
    """

    def __init__(self, limit: int = -1) -> None:
        self.limit = limit
        self.total = 0
        self._sizes: dict[Owner, int] = {}

    def note(self, owner: Owner, size: int) -> Owner | None:
        """Record the bytes of `owner`; over the limit, the owner with the most bytes."""
        self.total += size - self._sizes.get(owner, 0)
        if size:
            self._sizes[owner] = size
        else:
            self._sizes.pop(owner, None)
        if not 0 <= self.limit < self.total:
            return None
        return max(self._sizes, key=self._sizes.__getitem__)

    def of(self, owner: Owner) -> int:
        return self._sizes.get(owner, 0)


THROTTLED_MAX: Final = 1_000
"""Connections that came too early and are not closed yet; beyond, they are closed at once."""

T = TypeVar("T")


class LiveConnection(Evictable, NewConnection, Protocol):
    """A connection, as far as the network as a whole knows."""

    @property
    def connection(self) -> Connection: ...

    @property
    def unsent(self) -> Sized: ...

    def flush(self) -> None: ...

    def sweep(self, now_ns: int) -> None: ...

    def evict(self, reason: str) -> None: ...

    def refuse(self) -> None: ...

    def drain(self) -> None: ...


class Network:
    """The shared half of the network layer: one for each event loop."""

    def __init__(
        self,
        limits: NetLimits,
        clock: Clock,
        metrics: RequestMetrics,
        executor: Executor | None = None,
    ) -> None:
        self.clock = clock
        self.metrics = metrics
        self.buffers = Buffers()
        self.replies = ReplyMemory[LiveConnection]()
        self.queue = RunQueue(clock, _call_soon)
        self.connection_counts = ConnectionCounts()
        self.waiting_connections = WaitingConnections(self.connection_counts)
        self._admitting: asyncio.TimerHandle | None = None
        self._throttled: set[LiveConnection] = set()  # came too early: closed a little later
        self.error_log = PeerErrorLog(clock)
        # In order of arrival, so that a simulation can be replayed.
        self.live: dict[LiveConnection, None] = {}
        self.in_turn = False  # a turn is being taken: it will flush `dirty` itself
        self.dirty: list[LiveConnection] = []
        self._executor = executor
        self.tls = TlsResources()
        self._empty_waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._listeners = 0
        self._unswept: list[LiveConnection] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self.apply(limits)

    def apply(self, limits: NetLimits) -> None:
        """Put `limits` in force, now and for the connections there are."""
        self.limits = limits
        self.queue.limit = limits.queued_max_requests
        self.buffers.admission.set_limit(limits.queued_max_request_bytes)
        self.replies.limit = limits.reply_memory_bytes
        for live in self.live:
            live.connection.apply(limits)
        self._admit_waiting()

    def on_listener_opened(self) -> None:
        """The first listener starts the sweep and registers the metrics."""
        self._listeners += 1
        if self._listeners == 1:
            self._register_metrics()
            self._sweep()

    def on_listener_closed(self) -> None:
        self._listeners -= 1
        if self._listeners == 0 and self._sweeper is not None:
            self._sweeper.cancel()

    def admit(self, connection: LiveConnection) -> AdmissionDecision:
        """Admit a new connection, make it wait, or refuse it."""
        full = self.connection_counts.full(self.limits)
        admission = self.waiting_connections.admit(connection, self.limits, self.clock.mono_ms())
        if admission.decision is AdmissionDecision.NOW:
            self.live[connection] = None
            oldest = least_recently_used(self.live, connection.listener_name) if full else None
            if oldest is not None:
                oldest.evict(
                    "closing the least recently used connection for one of a broker: "
                    "max.connections or the limit of file descriptors is reached"
                )
        elif admission.decision is AdmissionDecision.LATER:
            listener = connection.listener_name
            reason = self.connection_counts.must_wait(self.limits, listener)
            if reason is not None:
                self.error_log.waiting(listener, reason)
            self._admit_waiting()
        else:
            self._refuse(connection, admission)
        return admission.decision

    def _refuse(self, connection: LiveConnection, admission: Admission) -> None:
        """Close it now, or a little later if it came too early."""
        self.error_log.closed(connection.peer, admission.reason)
        self.refused_counter(connection.listener_name).value += 1
        delayed_max = min(THROTTLED_MAX, self.limits.descriptors.waiting)
        if admission.decision is AdmissionDecision.NEVER or len(self._throttled) >= delayed_max:
            connection.refuse()
        else:
            self._throttled.add(connection)
            asyncio.get_running_loop().call_later(admission.delay_ms / 1e3, connection.refuse)

    def _admit_waiting(self) -> None:
        """Admit the waiting connections that are within the limits now."""
        if self._admitting is not None:
            self._admitting.cancel()
            self._admitting = None
        if not len(self.waiting_connections):
            return
        found, wait_ms = self.waiting_connections.next(self.limits, self.clock.mono_ms())
        while found is not None:
            connection, admission = cast(tuple[LiveConnection, Admission], found)
            if admission.decision is AdmissionDecision.NOW:
                self.live[connection] = None
                connection.on_admitted()
            else:
                self._refuse(connection, admission)
            found, wait_ms = self.waiting_connections.next(self.limits, self.clock.mono_ms())
        if wait_ms:
            loop = asyncio.get_running_loop()
            self._admitting = loop.call_later(wait_ms / 1e3, self._admit_waiting)

    def refused_counter(self, listener: str) -> Counter:
        return self.metrics.registry.counter(
            "kafka_server_socketservermetrics_connections_refused_total",
            "Connections closed on arrival because a limit was reached.",
            listener=listener,
        )

    def remove(self, connection: LiveConnection, peer: Peer) -> None:
        self._throttled.discard(connection)
        if self.waiting_connections.remove(connection) or connection not in self.live:
            return  # it was never admitted
        del self.live[connection]
        self.connection_counts.remove(peer.listener, peer.address)
        self._admit_waiting()
        if not self.connection_counts.of_listener(peer.listener):
            for waiter in self._empty_waiters.pop(peer.listener, ()):
                if not waiter.done():
                    waiter.set_result(None)

    def connections_of(self, listener: str) -> list[LiveConnection]:
        return [live for live in self.live if live.listener_name == listener]

    async def wait_until_empty(self, listener: str) -> None:
        """Until the last connection of `listener` is gone."""
        if self.connection_counts.of_listener(listener):
            waiter = asyncio.get_running_loop().create_future()
            self._empty_waiters.setdefault(listener, []).append(waiter)
            await waiter

    def wake(self, live: LiveConnection) -> None:
        """Replies of `live` became ready outside its turn: flush them with others like them."""
        if not self.dirty and not self.in_turn:
            _call_soon(self.flush)
        self.dirty.append(live)

    def flush(self) -> None:
        while self.dirty:
            dirty, self.dirty = self.dirty, []
            for live in dirty:
                live.flush()

    def note_replies(self, live: LiveConnection, size: int) -> None:
        """Record the bytes of unsent replies to `live`; over the limit, the largest is evicted."""
        largest = self.replies.note(live, size)
        if largest is not None:
            # Later, because the connection may be in the middle of a turn.
            _call_soon(lambda: self._evict_for_replies(largest))

    def _evict_for_replies(self, largest: LiveConnection) -> None:
        replies = self.replies
        if 0 <= replies.limit < replies.total and replies.of(largest):
            largest.evict(
                f"the client has not read {replies.of(largest)} bytes of replies, the most of all "
                f"clients; unread replies take {replies.total} bytes, the limit is {replies.limit}"
            )

    def run_blocking(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _register_metrics(self) -> None:
        gauge = self.metrics.registry.gauge
        queue = self.queue
        doc = "Connections with requests waiting to be handled."
        gauge("kafka_network_requestchannel_request_queue_size", doc, lambda: queue.data_size)
        gauge(
            "kafka_network_requestchannel_control_plane_request_queue_size",
            doc,
            lambda: queue.control_size,
        )
        gauge(
            "kafka_network_requestchannel_response_queue_size",
            "Replies that are not completely sent.",
            lambda: sum(len(live.unsent) for live in self.live),
        )
        admission = self.buffers.admission
        gauge(
            "kafka_network_socketserver_memory_pool_used",
            "Bytes of requests being received or handled.",
            lambda: admission.used,
        )
        gauge(
            "kafka_network_socketserver_memory_pool_available",
            "Bytes of queued.max.request.bytes that are left.",
            lambda: max(admission.limit - admission.used, 0),
        )
        gauge(
            "kafka_network_socketserver_requests_waiting_for_memory",
            "Connections whose large requests wait for memory.",
            lambda: admission.waiting,
        )
        gauge(
            "kafka_network_socketserver_unsent_reply_bytes",
            "Bytes of replies in memory that clients have not read.",
            lambda: self.replies.total,
        )
        self.metrics.registry.series(
            "kafka_server_socketservermetrics_client_versions",
            "Connections by client software, API and API version.",
            self._client_versions,
        )
        self.metrics.watch_loop()

    def _client_versions(self) -> Iterable[tuple[Labels, float]]:
        """Counts open connections only: clients choose their names, so none is kept."""
        counts: CountOf[Labels] = CountOf()
        names = self.metrics.names
        for live in self.live:
            peer = live.connection.peer
            client = (
                ("client_software_name", peer.software_name),
                ("client_software_version", peer.software_version),
            )
            for key, version in peer.versions.items():
                api = (("request", names.get(key, UNKNOWN)), ("version", str(version)))
                counts[client + api] += 1
        return counts.items()

    def _sweep(self) -> None:
        """Look at some connections now and at more a little later: never at all of them at once."""
        if not self._unswept:
            self._unswept = list(self.live)
        now_ns = self.clock.mono_ns()
        for live in self._unswept[-SWEEP_SLICE:]:
            live.sweep(now_ns)
        del self._unswept[-SWEEP_SLICE:]
        pause_ms = SWEEP_SLICE_MS if self._unswept else SWEEP_MS
        self._sweeper = asyncio.get_running_loop().call_later(pause_ms / 1e3, self._sweep)


def _call_soon(callback: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_soon(callback)
