"""Handles Produce requests that repeat the connection's last one; see the package.

Owns the template of a connection's last request, for the lifetime of the connection. Never replies
an error and never waits: what needs either is handed to the general handler, with nothing changed.
Hot: benchmarks/small_requests.py; its instructions are counted by benchmarks/instructions.py.
"""

from __future__ import annotations

from typing import Final

from ottla.api.fast_path.plain_batch import PlainBatches
from ottla.api.fast_path.request_template import RequestTemplate, template_of
from ottla.api.services import Services
from ottla.api.throttling import record_produce
from ottla.model.ids import INTERNAL_TOPICS, Offset
from ottla.net.request_slot import Answer, Peer, RequestSlot
from ottla.protocol.hot.produce_request import ProduceRequest
from ottla.protocol.wire import Call
from ottla.replica.append import ALL
from ottla.replica.partition import HostedPartition
from ottla.security.acl import Kind, Operation

MISSES_MAX: Final = 16
"""How many requests may differ from the template before a new one is stored."""


class FastProduce:
    """Handles the frames of one connection."""

    __slots__ = (
        "_batches", "_client_id", "_clock", "_hosted", "_is_limited", "_misses", "_peer",
        "_quotas", "_template", "_topic", "_version", "general",
    )  # fmt: skip

    def __init__(
        self,
        template: RequestTemplate,
        topic: str,
        peer: Peer,
        services: Services,
        client_id: str | None,
    ) -> None:
        self.general = _general_handler(peer)
        self._template = template
        self._topic = topic
        self._peer = peer
        self._hosted = services.replicas.hosted
        self._clock = services.broker.clock
        self._quotas = services.shared.quotas
        self._version = services.shared.quotas.version
        self._client_id = client_id
        self._is_limited = _is_limited(peer, client_id, services)
        self._batches = PlainBatches()
        self._misses = 0

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        """Handle a frame here, or by the general handler with nothing changed."""
        template = self._template
        parts = template.read(frame)
        if parts is None:
            self._misses += 1
        elif self._quotas.version != self._version:
            self.expire()
        elif not self._peer.unstarted:
            correlation_id, index, records = parts
            partition = self._hosted.find((self._topic, index))
            if partition is not None:
                first = self._append(partition, records)
                if first is not None:
                    start = partition.log.start_offset
                    delay_ms = self._throttle(len(frame), slot) if self._is_limited else 0
                    reply = template.reply(correlation_id, index, first, start, delay_ms)
                    slot.reply((reply,))
                    return
        self.general(frame, slot)

    def _throttle(self, size: int, slot: RequestSlot) -> int:
        clock = self._clock
        principal, client_id = self._peer.principal, self._client_id
        usage = self._quotas.usage_of(principal, client_id, clock.mono_ms())
        return record_produce(usage, size, slot, clock)

    @property
    def is_outdated(self) -> bool:
        """Whether the requests of the connection differ from the template by now."""
        return self._misses > MISSES_MAX

    def expire(self) -> None:
        """Quotas or ACLs have changed: the next request is remembered anew."""
        self._misses = MISSES_MAX + 1

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


class AuthorizedProduce(FastProduce):
    """The same, for a client that was authorized by ACLs: as long as they do not change.

    A class of its own, so that a broker without an authorizer does nothing for it.
    """

    __slots__ = ("_acl_version", "_authorizer")

    def __init__(
        self,
        template: RequestTemplate,
        topic: str,
        peer: Peer,
        services: Services,
        client_id: str | None,
    ) -> None:
        super().__init__(template, topic, peer, services, client_id)
        self._authorizer = services.authorizer
        self._acl_version = services.authorizer.version

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        if self._authorizer.version == self._acl_version:
            FastProduce.__call__(self, frame, slot)
        else:
            self.expire()
            self.general(frame, slot)


def remember(
    call: Call, frame: memoryview, request: ProduceRequest, peer: Peer, services: Services
) -> None:
    """Use the fast path for the peer's next requests, if they are likely to repeat this one."""
    current = peer.answer
    if isinstance(current, FastProduce) and not current.is_outdated:
        return
    if peer.login is not None and peer.login.has_expired:
        return  # whoever handles its frames now lets only a login pass
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
    guarded = services.authorizer.in_force
    if guarded and not services.authorizer.allows(
        peer, Operation.WRITE, Kind.TOPIC, topic, log_denial=False
    ):
        return None
    kind = AuthorizedProduce if guarded else FastProduce
    return kind(template, topic, peer, services, call.client_id)


def _is_limited(peer: Peer, client_id: str | None, services: Services) -> bool:
    """Whether a quota applies to what the client produces."""
    quotas = services.shared.quotas
    if not quotas.in_force or peer.is_broker:
        return False
    usage = quotas.usage_of(peer.principal, client_id, services.broker.clock.mono_ms())
    return usage.produce is not None or usage.request is not None


def _general_handler(peer: Peer) -> Answer:
    """The handler of the connection's frames without the fast path."""
    current = peer.answer
    return current.general if isinstance(current, FastProduce) else current
