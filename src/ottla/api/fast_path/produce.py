"""Handles Produce requests that repeat the connection's last one; see the package.

Owns the template of a connection's last request, for the lifetime of the connection. Never replies
an error and never waits: what needs either is handed to the general handler, with nothing changed.
Hot: benchmarks/small_requests.py.
"""

from __future__ import annotations

from typing import Final

from ottla.api.fast_path.plain_batch import PlainBatches
from ottla.api.fast_path.request_template import RequestTemplate, template_of
from ottla.api.services import Services
from ottla.model.ids import INTERNAL_TOPICS, Offset, TopicPartition
from ottla.net.request_slot import Answer, Peer, RequestSlot
from ottla.protocol.hot.produce import ProduceRequest
from ottla.protocol.wire import Call
from ottla.replica.append import ALL
from ottla.replica.partition import HostedPartition

MISSES_MAX: Final = 16
"""How many requests may differ from the template before a new one is stored."""


class FastProduce:
    """Handles the frames of one connection."""

    __slots__ = ("_batches", "_clock", "_hosted", "_misses", "_peer", "_template", "_topic",
                 "general")  # fmt: skip

    def __init__(self, template: RequestTemplate, topic: str, peer: Peer, services: Services):
        self.general = _general_handler(peer)
        self._template = template
        self._topic = topic
        self._peer = peer
        self._hosted = services.replicas.hosted
        self._clock = services.clock
        self._batches = PlainBatches()
        self._misses = 0

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        if self._peer.unstarted or not self._handle(frame, slot):
            self.general(frame, slot)

    @property
    def is_outdated(self) -> bool:
        """Whether the requests of the connection differ from the template by now."""
        return self._misses > MISSES_MAX

    def _handle(self, frame: memoryview, slot: RequestSlot) -> bool:
        """Whether the request was handled; if not, nothing has changed."""
        template = self._template
        parts = template.read(frame)
        if parts is None:
            self._misses += 1
            return False
        correlation_id, index, records = parts
        partition = self._hosted.find(TopicPartition(self._topic, index))
        if partition is None or not self._is_same_topic(partition):
            return False
        first = self._append(partition, records)
        if first is None:
            return False
        slot.reply((template.reply(correlation_id, index, first, partition.log.start_offset),))
        return True

    def _is_same_topic(self, partition: HostedPartition) -> bool:
        """A topic requested by id may have been deleted and created again under its name."""
        topic_id = self._template.topic_id
        return topic_id is None or partition.log.topic_id == topic_id

    def _append(self, partition: HostedPartition, batch: memoryview) -> Offset | None:
        """The first offset of the batch, which may be acknowledged at once; None if declined."""
        leadership = partition.leadership
        if leadership is None or partition.rewriting is not None or partition.waits_for_flush:
            return None
        if self._template.acks == ALL and (
            leadership.followers
            or partition.flushes_before_ack(leadership)
            or len(leadership.isr) < partition.min_isr(leadership)
        ):
            return None
        log, epoch, hosted = partition.log, partition.leader_epoch, self._hosted
        header = self._batches.check(batch, log, epoch, self._clock.wall_ms())
        if header is None:
            return None
        try:
            first = log.append_validated(batch, header, epoch)
        except OSError as error:
            hosted.fail(partition, error)  # the general path finds the partition offline
            return None
        hosted.topic_metrics.count_request(partition.topic_metrics)
        hosted.topic_metrics.count_append(partition.topic_metrics, len(batch), header.count)
        hosted.advance(partition)
        return first


def remember(
    call: Call, frame: memoryview, request: ProduceRequest, peer: Peer, services: Services
) -> None:
    """Use the fast path for the peer's next requests, if they are likely to repeat this one."""
    current = peer.answer
    if isinstance(current, FastProduce) and not current.is_outdated:
        return
    fast = _fast_path_for(call, frame, request, peer, services)
    peer.answer = fast or _general_handler(peer)


def _fast_path_for(
    call: Call, frame: memoryview, request: ProduceRequest, peer: Peer, services: Services
) -> FastProduce | None:
    if request.acks == 0:
        return None
    template = template_of(call, frame, request)
    if template is None:
        return None
    topic = template.topic
    if template.topic_id is not None:
        topic = services.metadata.image.names.get(template.topic_id)
    if topic is None or topic in INTERNAL_TOPICS:
        return None
    return FastProduce(template, topic, peer, services)


def _general_handler(peer: Peer) -> Answer:
    """The handler of the connection's frames without the fast path."""
    current = peer.answer
    return current.general if isinstance(current, FastProduce) else current
