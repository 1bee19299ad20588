"""The sender: from queues of batches to requests, and from replies to outcomes.

Owns: the requests that are unanswered, by broker, and when to look at the queues again. Never
decides which batch is ready (`accumulator`), what number it has (`sequences`), or whether it may
be sent within a transaction (`transaction`).

Runs on the event loop as plain callbacks: `step` is called when a caller has filled a batch, when
a reply has come, and when a timer says so. Nothing in it waits; what does is a chore.
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
from ottla.client.cluster_view import ClusterView
from ottla.client.errors import KafkaError, refusal
from ottla.client.producer.buffer.accumulator import FOREVER_MS, Accumulator
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.buffer.batch_encoder import WORTH_A_KERNEL, Encoder, load_native
from ottla.client.producer.buffer.queues import Queue
from ottla.client.producer.buffer.record_intake import RecordIntake
from ottla.client.producer.sender import produce_request
from ottla.client.producer.sender.background_tasks import BackgroundTasks
from ottla.client.producer.sender.batch_numbering import BatchNumbering
from ottla.client.producer.sender.batch_results import BatchResults
from ottla.client.retry import is_stale
from ottla.config.client import ProducerConfig
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID
from ottla.protocol.encode import ms
from ottla.protocol.records.compression import Bytes

log: Final = logging.getLogger("ottla.producer")


@dataclass(slots=True, eq=False)
class Request:
    """Batches on their way to one broker."""

    link: BrokerConnection
    version: int
    batches: list[Batch]
    view: ClusterView
    sent_ms: int


class Sender:
    """Sends what is ready, and hears what became of it."""

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
        self._ratios = intake.ratios
        self._queues = intake.queues
        self.encoder = Encoder(config.compression_type, config.compression_level)
        self._in_flight: dict[int, deque[Request]] = {}
        self._paused_until_ms: dict[int, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._has_kernel = False
        self._is_woken = False
        self._is_closed = False

    def wake(self) -> None:
        """Take a step soon. On the loop's thread only."""
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
        """Look at everything once, do what can be done, and say when to look again."""
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

    def _send_ready(self, now_ms: int) -> int:
        broken_by = self._numbering.broken_by
        if broken_by is not None:
            self.outcomes.abandon(broken_by, numbered=False)
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

    def _send_to(self, node: int, queues: list[Queue], view: ClusterView, now_ms: int) -> int:
        """Fill one broker's pipeline; how long until there is a reason to try again."""
        paused_ms = self._paused_until_ms.get(node, 0) - now_ms
        if paused_ms > 0:
            return paused_ms
        link = self._cluster.link(node)
        if link is None:
            return self._refresh_metadata({queue.tp.topic for queue in queues})
        if not link.peer.is_open:
            return self.background_tasks.do(("connect", node), partial(self._connect, link, queues))
        in_flight = self._in_flight.setdefault(node, deque())
        while len(in_flight) < self._config.max_in_flight_requests_per_connection:
            batches = self._accumulator.drain(node, queues, self._numbering.may_drain)
            if not batches:
                break
            self._send(node, link, batches, view)
        return FOREVER_MS

    def _send(
        self, node: int, link: BrokerConnection, batches: list[Batch], view: ClusterView
    ) -> None:
        for batch in batches:
            if batch.records >= WORTH_A_KERNEL and not self._has_kernel:
                self._has_kernel = True
                self.background_tasks.do("kernel", self._load_kernel)
            self._numbering.sent(batch)
            plain_bytes = batch.size
            was_encoded = batch.encoded is not None
            self.encoder.encode(batch)
            if not was_encoded:
                self._ratios.learn(batch.tp.topic, plain_bytes, batch.size)
        version = self._version(link, batches, view)
        acks = self._config.required_acks
        body = produce_request.body(
            version, view, batches, self._config.transactional_id,
            (acks, self._config.request_timeout_ms),
        )  # fmt: skip
        request = Request(link, version, batches, view, self._cluster.clock.mono_ms())
        if acks == 0:
            self._send_without_acks(request, body)
            return
        self._in_flight[node].append(request)
        reply = link.post(produce_request.PRODUCE, version, body)
        if reply is None:  # it was open a moment ago
            self._on_response(node, request, None, ConnectionError("the connection is gone"))
        else:
            reply.add_done_callback(partial(self._on_reply, node, request))

    def _send_without_acks(self, request: Request, body: list[Bytes]) -> None:
        """With acks=0 a batch is delivered when it is written; nobody will say where it is."""
        if not request.link.put(produce_request.PRODUCE, request.version, body):
            self._on_connection_lost(request, ConnectionError("the connection is gone"))
            return
        self._on_request_done(request)
        for batch in request.batches:
            self.outcomes.succeeded(batch, -1, -1)

    def _version(self, link: BrokerConnection, batches: list[Batch], view: ClusterView) -> int:
        at_most = self._numbering.newest_produce
        if any(view.topics[batch.tp.topic].id == NO_TOPIC_ID for batch in batches):
            at_most = min(at_most, produce_request.FIRST_BY_ID - 1)
        return link.versions.pick(produce_request.PRODUCE, at_most)

    # replies

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
            log.exception("a reply could not be handled")
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
            except OSError as garbled:
                error = garbled
        if error is not None:
            self._on_connection_lost(request, error)
            return
        self._on_request_done(request)
        pause_ms = ms(reply.throttle_time)
        if pause_ms > 0:
            self._paused_until_ms[node] = self._cluster.clock.mono_ms() + pause_ms
        stale: set[str] = set()
        for batch, answer in produce_request.results(reply, request.batches, request.view):
            if not answer.code:
                self.outcomes.succeeded(batch, answer.base_offset, answer.append_time_ms)
            else:
                self._on_error(batch, answer, stale)
        if stale:
            self._refresh_metadata(stale)

    def _on_error(
        self, batch: Batch, answer: produce_request.PartitionResult, stale: set[str]
    ) -> None:
        error = refusal(answer.code, answer.message or answer.code.name)
        if answer.code is ErrorCode.message_too_large and batch.records > 1:
            self.outcomes.split(batch, self.encoder, self._config.batch_size)
            return
        if is_stale(error):
            if answer.leader is not None:
                self._cluster.metadata = self._cluster.metadata.with_leader(
                    batch.tp, *answer.leader
                )
            stale.add(batch.tp.topic)
        self.outcomes.on_error(batch, error, answer.log_start)

    def _on_connection_lost(self, request: Request, error: BaseException) -> None:
        """No reply will come: the batches may have arrived or not."""
        self._on_request_done(request)
        told = KafkaError(ErrorCode.network_exception, f"{request.link.node}: {error}")
        for batch in request.batches:
            self.outcomes.on_error(batch, told, -1)
        self._refresh_metadata({batch.tp.topic for batch in request.batches})

    def _on_request_done(self, request: Request) -> None:
        for batch in request.batches:
            self._numbering.returned(batch)
        self._accumulator.unmute(request.batches)

    # what else has to be done

    async def _connect(self, link: BrokerConnection, queues: list[Queue]) -> None:
        try:
            await link.ready()
        except OSError:
            self._refresh_metadata({queue.tp.topic for queue in queues})
            raise

    async def _load_kernel(self) -> None:
        """Away from the loop: it takes a second or more, and Python does the work meanwhile."""
        loop = asyncio.get_running_loop()
        self.encoder.native = await loop.run_in_executor(None, load_native)

    def _refresh_metadata(self, topics: set[str]) -> int:
        """Ask for the metadata of these topics, soon."""
        wanted = frozenset(topics)
        return self.background_tasks.do("metadata", lambda: self._cluster.refresh(wanted))

    def _topics_in_use(self, now_ms: int) -> set[str]:
        """The topics to learn anew; those unused for `metadata.max.idle.ms` are forgotten."""
        used = self._queues.used_since(now_ms - self._config.metadata_max_idle_ms)
        view = self._cluster.metadata
        self._cluster.metadata = view.without(set(view.topics) - used)
        return used

    def _close_timed_out_connections(self, now_ms: int) -> int:
        """End connections whose oldest request has no answer; how long until the next would be."""
        wait_ms = FOREVER_MS
        for requests in list(self._in_flight.values()):
            if requests:
                left_ms = requests[0].sent_ms + self._config.request_timeout_ms - now_ms
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
