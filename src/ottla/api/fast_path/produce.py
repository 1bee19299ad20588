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
from ottla.api.throttling import throttle_client
from ottla.model.ids import INTERNAL_TOPICS, Offset
from ottla.net.request_slot import Answer, Peer, RequestSlot
from ottla.protocol.hot.produce_request import ProduceRequest
from ottla.protocol.wire import Call
from ottla.replica.append import ALL
from ottla.replica.partition import HostedPartition
from ottla.security.quotas.client_quotas import client_of
from ottla.security.quotas.entities import Client, Quota

MISSES_MAX: Final = 16
"""How many requests may differ from the template before a new one is stored."""


class FastProduce:
    """Handles the frames of one connection."""

    __slots__ = (
        "_batches", "_clock", "_hosted", "_limited_client", "_misses", "_peer", "_quotas",
        "_template", "_topic", "_version", "general",
    )  # fmt: skip

    def __init__(
        self,
        template: RequestTemplate,
        topic: str,
        peer: Peer,
        services: Services,
        limited_client: Client | None,
    ) -> None:
        self.general = _general_handler(peer)
        self._template = template
        self._topic = topic
        self._peer = peer
        self._hosted = services.replicas.hosted
        self._clock = services.broker.clock
        self._quotas = services.shared.quotas
        self._version = services.shared.quotas.version
        self._limited_client = limited_client
        self._batches = PlainBatches()
        self._misses = 0

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        template = self._template
        parts = template.read(frame)
        if parts is None:
            self._misses += 1
        elif self._quotas.version != self._version:
            self._misses = MISSES_MAX + 1  # quotas have changed: start again
        elif not self._peer.unstarted:
            correlation_id, index, records = parts
            partition = self._hosted.find((self._topic, index))
            if partition is not None:
                first = self._append(partition, records)
                if first is not None:
                    start = partition.log.start_offset
                    client, delay_ms = self._limited_client, 0
                    if client is not None:
                        used = (Quota.PRODUCE, len(frame))
                        delay_ms = throttle_client(client, slot, self._quotas, self._clock, used)
                    reply = template.reply(correlation_id, index, first, start, delay_ms)
                    slot.reply((reply,))
                    return
        self.general(frame, slot)

    @property
    def is_outdated(self) -> bool:
        """Whether the requests of the connection differ from the template by now."""
        return self._misses > MISSES_MAX

    def _append(self, partition: HostedPartition, batch: memoryview) -> Offset | None:
        """The first offset of the batch, which may be acknowledged at once; None if declined."""
        template, leadership = self._template, partition.leadership
        if leadership is None or partition.rewriting is not None or partition.waits_for_flush:
            return None
        if template.acks == ALL and (
            leadership.followers
            or partition.flushes_before_ack(leadership)
            or len(leadership.isr) < partition.min_isr(leadership)
        ):
            return None
        log, epoch, hosted = partition.log, partition.leader_epoch, self._hosted
        if template.topic_id is not None and log.topic_id != template.topic_id:
            return None  # deleted and created again under its name
        header = self._batches.check(batch, log, epoch, self._clock.wall_ms())
        if header is None:
            return None
        try:
            first = log.append_validated(batch, header, epoch)
        except OSError as error:
            hosted.fail(partition, error)  # the general path finds the partition offline
            return None
        hosted.topic_metrics.count_append(partition.topic_metrics, len(batch), header[12])
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
    limited = None
    if services.shared.quotas.in_force and not peer.is_broker:
        client = client_of(peer.principal, call.client_id)
        quotas = (Quota.PRODUCE, Quota.REQUEST)
        if any(services.shared.quotas.limit(quota, client) is not None for quota in quotas):
            limited = client
    return FastProduce(template, topic, peer, services, limited)


def _general_handler(peer: Peer) -> Answer:
    """The handler of the connection's frames without the fast path."""
    current = peer.answer
    return current.general if isinstance(current, FastProduce) else current
