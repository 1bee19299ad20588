"""Fast path for Produce requests shaped like the peer's last one: read, append, reply in one step.

Owns the shape of a peer's last request, for the lifetime of the connection. Never handles anything
unusual: it leaves that to the general path, `dispatch` and `produce`, which also report errors. It
checks no permissions: it is not used while an authorizer is configured. Hot:
benchmarks/small_requests.py.
"""

from __future__ import annotations

from typing import Final

from ottla.api.services import Services
from ottla.log.plain_append import DECLINED
from ottla.model.errors import KafkaError
from ottla.model.ids import INTERNAL_TOPICS, TopicPartition
from ottla.net.request_slot import RequestSlot
from ottla.protocol.hot.produce import ProduceRequest
from ottla.protocol.hot.shape import Shape, shape_of
from ottla.protocol.wire import Call
from ottla.replica.express_append import append_express
from ottla.replica.partition import HostedPartition

_new: Final = tuple.__new__  # builds a named tuple in half the time; hot
MISSES_MAX: Final = 16
"""How many requests may have another shape before a new shape is stored."""


class ExpressProduce:
    """Handles a peer's next requests, if they have the shape of an earlier one."""

    __slots__ = ("_clock", "_hosted", "_misses", "_shape", "_topic")

    def __init__(self, shape: Shape, topic: str, services: Services) -> None:
        self._shape = shape
        self._topic = topic
        self._hosted = services.replicas.hosted
        self._clock = services.clock
        self._misses = 0

    def __call__(self, frame: memoryview, slot: RequestSlot) -> bool:
        """Whether the request was handled; if not, nothing has changed."""
        shape = self._shape
        parts = shape.read(frame)
        if parts is None:
            self._misses += 1
            return False
        correlation, index, records = parts
        partition = self._hosted.find(_new(TopicPartition, (self._topic, index)))
        if partition is None or not self._is_meant(partition):
            return False
        now_ms = self._clock.wall_ms()
        try:
            first = append_express(self._hosted, partition, records, shape.acks, now_ms)
        except KafkaError:  # the disk failed: the general path finds the partition offline
            return False
        if first == DECLINED:
            return False
        slot.reply((shape.reply(correlation, index, first, partition.log.start_offset),))
        return True

    def missed(self) -> bool:
        """Whether the peer's requests have another shape by now."""
        return self._misses > MISSES_MAX

    def _is_meant(self, partition: HostedPartition) -> bool:
        """A topic requested by id may have been deleted and created again under its name."""
        topic_id = self._shape.topic_id
        return topic_id is None or partition.log.topic_id == topic_id


def express_for(
    call: Call, frame: memoryview, request: ProduceRequest, services: Services
) -> ExpressProduce | None:
    """The fast path for requests of this shape, if there is one."""
    if request.acks == 0:
        return None
    shape = shape_of(call, frame, request)
    if shape is None:
        return None
    topic = shape.name
    if shape.topic_id is not None:
        topic = services.metadata.image.names.get(shape.topic_id)
    if topic is None or topic in INTERNAL_TOPICS:
        return None
    return ExpressProduce(shape, topic, services)
