"""The sender: from queues of batches to requests, and from responses to outcomes.

Owns: the requests in flight, by broker, and when to check the queues again. Never decides which
batch is ready (`accumulator`), its sequence number (`sequences`), or whether it may be sent within
a transaction (`transactions.state`).

Runs on the event loop as plain callbacks: `step` is called when a caller has filled a batch, when a
response has arrived, and by a timer. It never waits; background tasks do.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Final

from ottla.client.broker_connection import BrokerConnection
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import ClusterView, Node
from ottla.client.errors import KafkaError, refusal
from ottla.client.producer.buffer.accumulator import FOREVER_MS, Accumulator
from ottla.client.producer.buffer.batch import NS_PER_MS, Batch
from ottla.client.producer.buffer.batch_encoder import NATIVE_MIN_RECORDS, Encoder, load_native
from ottla.client.producer.buffer.queues import Queue
from ottla.client.producer.buffer.record_intake import RecordIntake
from ottla.client.producer.sender import produce_request
from ottla.client.producer.sender.background_tasks import BackgroundTasks
from ottla.client.producer.sender.batch_numbering import BatchNumbering
from ottla.client.producer.sender.batch_results import BatchResults
from ottla.client.producer.sender.request_metrics import RequestMetrics
from ottla.client.retry import is_stale
from ottla.config.client import ProducerConfig
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID
from ottla.protocol.encode import ms
from ottla.protocol.hot.produce_request import FIRST_BY_ID
from ottla.protocol.records.compression import Bytes

log: Final = logging.getLogger("ottla.producer")


@dataclass(slots=True, eq=False)
class Request:
    """A Produce request in flight to one broker."""

    link: BrokerConnection
    version: int
    batches: list[Batch]
    view: ClusterView
    sent_ns: int


class Sender:
    """Sends ready batches and handles responses."""

    def __init__(
        self,
        config: ProducerConfig,
        cluster: Cluster,
        accumulator: Accumulator,
        numbering: BatchNumbering,
        intake: RecordIntake,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._accumulator = accumulator
        self._numbering = numbering
        self.background_tasks = BackgroundTasks(cluster.clock, cluster.backoff, self.wake)
        self.outcomes = BatchResults(config, cluster, accumulator, numbering, intake)
        self.requests = RequestMetrics()
        self._ratios = intake.ratios
        self._queues = intake.queues
        self.encoder = Encoder(config.compression_type, config.compression_level)
        self._in_flight: dict[int, deque[Request]] = {}
        self._paused_until_ms: dict[int, MonoMs] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._has_kernel = False
        self._is_woken = False
        self._is_closed = False

    def wake(self) -> None:
        """Schedule a step. On the loop's thread only."""
        if not self._is_woken and not self._is_closed:
            self._is_woken = True
            asyncio.get_running_loop().call_soon(self.step)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    @property
    def in_flight(self) -> int:
        return sum(map(len, self._in_flight.values()))

    def step(self) -> None:
        """Check everything once, send what is ready, and schedule the next step."""
        self._is_woken = False
        if self._is_closed:
            return
        now_ms = self._cluster.clock.mono_ms()
        wait_ms = self.outcomes.expire(now_ms)
        if self._cluster.is_due:
            wait_ms = min(wait_ms, self._refresh_metadata(self._topics_in_use(now_ms)))
        if not self._accumulator.is_empty:
            wait_ms = min(wait_ms, self._send_ready(now_ms))
        self._schedule_step(min(wait_ms, self._close_timed_out_connections(now_ms)))

    def _send_ready(self, now_ms: MonoMs) -> int:
        broken_by = self._numbering.broken_by
        if broken_by is not None:
            self.outcomes.abandon(broken_by, numbered=False)
        refused_by = self._numbering.take_refusal()
        if refused_by is not None:
            self.outcomes.abandon(refused_by, numbered=False)
        view = self._cluster.metadata
        ready = self._accumulator.ready(view, now_ms)
        wait_ms = ready.wait_ms
        if ready.leaderless:
            wait_ms = min(wait_ms, self._refresh_metadata(ready.leaderless))
        if not ready.nodes:
            return wait_ms
        wait_ms = min(wait_ms, self._numbering.prepare(self.background_tasks))
        if not self._numbering.is_ready:
            return wait_ms
        for node, queues in ready.nodes.items():
            wait_ms = min(wait_ms, self._send_to(node, queues, view, now_ms))
        return wait_ms

    def _send_to(self, node: int, queues: list[Queue], view: ClusterView, now_ms: MonoMs) -> int:
        """Send to one broker until its pipeline is full; the time until the next attempt."""
        paused_ms = self._paused_until_ms.get(node, 0) - now_ms
        if paused_ms > 0:
            return paused_ms
        link = self._cluster.link(node)
        if link is None:
            return self._refresh_metadata({queue.tp.topic for queue in queues})
        in_flight = self._in_flight.setdefault(node, deque())
        while link.peer.is_ready:  # no longer, once its login is about to end
            if len(in_flight) >= self._config.max_in_flight_requests_per_connection:
                return FOREVER_MS
            batches = self._accumulator.drain(node, queues, self._numbering.may_drain)
            if not batches:
                return FOREVER_MS
            self._send(node, link, batches, view)
        return self.background_tasks.start(("connect", node), partial(self._connect, link))

    def _send(
        self, node: int, link: BrokerConnection, batches: list[Batch], view: ClusterView
    ) -> None:
        for batch in batches:
            if batch.records >= NATIVE_MIN_RECORDS and not self._has_kernel:
                self._has_kernel = True
                self.background_tasks.start("kernel", self._load_kernel)
            self._numbering.sent(batch)
            batch.leader_epoch = view.leader_epoch(batch.tp)
            was_encoded = batch.encoded is not None
            self.encoder.encode(batch)
            if not was_encoded:
                self._ratios.learn(batch.tp.topic, batch.plain_bytes, batch.size)
        version = self._version(link, batches, view)
        acks = self._config.required_acks
        body = produce_request.body(
            version, view, batches, self._config.transactional_id,
            (acks, self._config.request_timeout_ms),
        )  # fmt: skip
        request = Request(link, version, batches, view, self._cluster.clock.mono_ns())
        if acks == 0:
            self._send_without_acks(request, body)
            return
        self._in_flight[node].append(request)
        reply = link.post(produce_request.PRODUCE, version, body)
        if reply is None:  # it was open a moment ago
            self._on_response(node, request, None, ConnectionError("connection closed"))
        else:
            self.requests.on_sent(batches)
            reply.add_done_callback(partial(self._on_reply, node, request))

    def _send_without_acks(self, request: Request, body: list[Bytes]) -> None:
        """With acks=0 a batch is delivered when it is written; its offset stays unknown."""
        if not request.link.put(produce_request.PRODUCE, request.version, body):
            self._on_connection_lost(request, ConnectionError("connection closed"))
            return
        self.requests.on_sent(request.batches)
        self._on_request_done(request)
        for batch in request.batches:
            self.outcomes.succeed(batch, -1, -1)

    def _version(self, link: BrokerConnection, batches: list[Batch], view: ClusterView) -> int:
        at_most = self._numbering.newest_produce
        if any(view.topics[batch.tp.topic].id == NO_TOPIC_ID for batch in batches):
            at_most = min(at_most, FIRST_BY_ID - 1)
        return link.versions.pick(produce_request.PRODUCE, at_most)

    # responses

    def _on_reply(self, node: int, request: Request, reply: asyncio.Future[memoryview]) -> None:
        if reply.cancelled():
            return
        error = reply.exception()
        if error is not None:
            self._on_response(node, request, None, error)
            return
        try:
            self._on_response(node, request, reply.result(), None)
        except Exception:
            log.exception(
                "cannot handle Produce response from %s; closing the connection", request.link.node
            )
            request.link.peer.hang_up()
            raise

    def _on_response(
        self, node: int, request: Request, frame: memoryview | None, error: BaseException | None
    ) -> None:
        self._in_flight[node].remove(request)
        self.wake()
        if frame is not None:
            try:
                reply = request.link.read(produce_request.PRODUCE, request.version, frame)
            except OSError as malformed:
                error = malformed
        if error is not None:
            self._on_connection_lost(request, error)
            return
        now_ns = self._cluster.clock.mono_ns()
        self.requests.on_response(now_ns - request.sent_ns, now_ns)
        self._on_request_done(request)
        pause_ms = ms(reply.throttle_time)
        if pause_ms > 0:
            self._paused_until_ms[node] = MonoMs(now_ns // NS_PER_MS + pause_ms)
        stale: set[str] = set()
        for leader in reply.node_endpoints:
            self._cluster.metadata = self._cluster.metadata.with_node(
                Node(leader.node_id, leader.host, leader.port, leader.rack)
            )
        for batch, result in produce_request.results(reply, request.batches, request.view):
            if not result.code:
                self.outcomes.succeed(batch, result.base_offset, result.append_time_ms)
            else:
                self._on_error(batch, result, stale)
        if stale:
            self._refresh_metadata(stale)

    def _on_error(
        self, batch: Batch, result: produce_request.PartitionResult, stale: set[str]
    ) -> None:
        error = refusal(result.code, result.message or result.code.name)
        if result.code is ErrorCode.message_too_large and batch.records > 1:
            self.outcomes.split(batch, self.encoder, self._config.batch_size)
            return
        if is_stale(error):
            if result.leader is not None:
                self._cluster.metadata = self._cluster.metadata.with_leader(
                    batch.tp, *result.leader
                )
            stale.add(batch.tp.topic)
        self.outcomes.on_error(batch, error, result.log_start)

    def _on_connection_lost(self, request: Request, error: BaseException) -> None:
        """There will be no response: the batches may or may not have been written."""
        self._on_request_done(request)
        network_error = KafkaError(ErrorCode.network_exception, f"{request.link.node}: {error}")
        for batch in request.batches:
            self.outcomes.on_error(batch, network_error, -1)
        topics = {batch.tp.topic for batch in request.batches}
        self._refresh_metadata(topics | self._topics_led_by(request.link))

    def _on_request_done(self, request: Request) -> None:
        for batch in request.batches:
            self._numbering.on_returned(batch)
        self._accumulator.unmute(request.batches)

    # connections, metadata, timers

    async def _connect(self, link: BrokerConnection) -> None:
        try:
            await link.ready()
        except OSError:
            self._refresh_metadata(self._topics_led_by(link))
            self.background_tasks.start(
                ("new leaders", link.node.id), partial(self._look_for_new_leaders, link)
            )
            raise

    async def _look_for_new_leaders(self, link: BrokerConnection) -> None:
        """Refresh the metadata until the broker is reached, or leads nothing any more.

        Connections to a dead broker are tried once a second at last (`reconnect.backoff.max.ms`);
        the others know of its successors sooner than that.
        """
        looks = 0
        while link.peer.not_before_ms and (topics := self._topics_led_by(link)):
            looks += 1
            await asyncio.sleep(self._cluster.backoff.after(looks) / 1e3)
            await self._cluster.refresh(topics)
            self.wake()

    def _topics_led_by(self, link: BrokerConnection) -> set[str]:
        """All of them are refreshed at once: the next request would have to wait."""
        return self._cluster.metadata.topics_led_by(link.node.id)

    async def _load_kernel(self) -> None:
        """On another thread: it takes a second or more; plain Python encodes meanwhile."""
        loop = asyncio.get_running_loop()
        self.encoder.native = await loop.run_in_executor(None, load_native)

    def _refresh_metadata(self, topics: set[str]) -> int:
        """Request the metadata of these topics in the background."""
        names = frozenset(topics)
        return self.background_tasks.start("metadata", lambda: self._cluster.refresh(names))

    def _topics_in_use(self, now_ms: MonoMs) -> set[str]:
        """The topics to refresh; those unused for `metadata.max.idle.ms` are dropped."""
        used = self._queues.used_since(MonoMs(now_ms - self._config.metadata_max_idle_ms))
        view = self._cluster.metadata
        self._cluster.metadata = view.without(set(view.topics) - used)
        return used

    def _close_timed_out_connections(self, now_ms: MonoMs) -> int:
        """Close connections whose oldest request timed out; the time until the next would."""
        wait_ms = FOREVER_MS
        for requests in list(self._in_flight.values()):
            if requests:
                sent_ms = requests[0].sent_ns // NS_PER_MS
                left_ms = sent_ms + self._config.request_timeout_ms - now_ms
                if left_ms <= 0:
                    requests[0].link.peer.hang_up()
                else:
                    wait_ms = min(wait_ms, left_ms)
        return wait_ms

    def _schedule_step(self, wait_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if 0 < wait_ms < FOREVER_MS:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(wait_ms / 1e3, self.wake)
