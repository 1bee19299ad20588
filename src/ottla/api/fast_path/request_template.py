"""Reads requests that repeat an earlier one, and writes their replies.

Owns the bytes of one Produce request that has been decoded in full. The next requests are read in
one step if they differ only in correlation id, partition and records, and their replies are written
in another. Never reads a frame that differs anywhere else. Hot: benchmarks/small_requests.py.
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from uuid import UUID

from ottla.protocol.hot.parts import topic_bytes
from ottla.protocol.hot.produce_request import ProduceRequest
from ottla.protocol.wire import Call

VERSIONS: Final = frozenset({7, *range(9, 14)})
"""The versions in use: they support every codec, and their replies have two layouts."""

_CORRELATION_AT: Final = 4
_PREFIX_AT: Final = 8
_INDEX_SIZE: Final = 4
_PLAIN_SIZE: Final = 4
_TAGS: Final = 3  # nothing tagged in the partition, the topic and the request


class RequestTemplate:
    """A request with one topic, one partition and no transaction."""

    __slots__ = (
        "_head", "_prefix", "_read", "_records_at", "_reply_middle", "_write", "_write_size",
        "acks", "flexible", "topic", "topic_id",
    )  # fmt: skip

    def __init__(self, call: Call, frame: memoryview, request: ProduceRequest, end: int) -> None:
        """`end` is the end of the constant part: the position of the partition index."""
        name, topic_id, _ = request.topics[0]
        self.flexible = flexible = call.flexible
        self.acks = request.acks
        self.topic: str | None = name
        self.topic_id: UUID | None = topic_id
        self._head = bytes(frame[:_CORRELATION_AT])
        self._prefix = bytes(frame[_PREFIX_AT:end])
        self._read = Struct(f">4si{end - _PREFIX_AT}si{'BB' if flexible else 'i'}")
        self._records_at = end + _INDEX_SIZE + _PLAIN_SIZE
        topic = topic_bytes(name if topic_id is None else topic_id, flexible)
        if flexible:  # no tags, one topic, one partition
            middle = b"\0\x02" + topic + b"\x02"
            self._write = Struct(f">ii{len(middle)}sihqqqBBBBiB")
        else:
            count_of_one = (1).to_bytes(4, "big")
            middle = count_of_one + topic + count_of_one
            self._write = Struct(f">ii{len(middle)}sihqqqi")
        self._reply_middle = middle
        self._write_size = self._write.size - 4

    def read(self, frame: memoryview) -> tuple[int, int, memoryview] | None:
        """Correlation id, partition and records; None for a frame that differs elsewhere."""
        size = len(frame)
        if size < self._records_at:
            return None
        if not self.flexible:
            head, correlation, prefix, index, length = self._read.unpack_from(frame)
            position = self._records_at
            if prefix != self._prefix or head != self._head or length != size - position:
                return None
            return correlation, index, frame[position:]
        head, correlation, prefix, index, low, high = self._read.unpack_from(frame)
        if prefix != self._prefix or head != self._head or low < 0x80 or high > 0x7F:
            return None  # only lengths of two bytes: a batch has more than 127
        position = self._records_at - 2
        end = position + (low & 0x7F | high << 7) - 1
        if end + _TAGS != size or frame[end] or frame[end + 1] or frame[end + 2]:
            return None
        return correlation, index, frame[position:end]

    def reply(
        self,
        correlation: int,
        index: int,
        base_offset: int,
        start_offset: int,
        throttle_ms: int = 0,
    ) -> bytes:
        """The framed reply to a record set that was appended with the producer's timestamps."""
        if self.flexible:
            return self._write.pack(
                self._write_size, correlation, self._reply_middle, index, 0, base_offset, -1,
                start_offset, 1, 0, 0, 0, throttle_ms, 0,
            )  # fmt: skip
        return self._write.pack(
            self._write_size, correlation, self._reply_middle, index, 0, base_offset, -1,
            start_offset, throttle_ms,
        )  # fmt: skip


def template_of(call: Call, frame: memoryview, request: ProduceRequest) -> RequestTemplate | None:
    """The template of this request, if the next ones are likely to repeat it."""
    if call.version not in VERSIONS or request.transactional_id is not None:
        return None
    if len(request.topics) != 1 or len(request.topics[0][2]) != 1:
        return None
    records = request.topics[0][2][0][1]
    if records is None:
        return None
    tail = _TAGS if call.flexible else 0
    before = len(frame) - tail - len(records) - (_uvarint_size(len(records) + 1) if tail else 4)
    template = RequestTemplate(call, frame, request, before - _INDEX_SIZE)
    return template if template.read(frame) is not None else None


def _uvarint_size(value: int) -> int:
    return (value.bit_length() + 6) // 7
