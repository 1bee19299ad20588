"""Parses a Fetch response in place: records stay views into the frame.

Owns the layout of versions 4 to 18. Used by consumers and followers. Hot:
benchmarks/clients_consumer.py. kio would copy every record set once; tests compare this parser with
kio.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple
from uuid import UUID

from ottla.model.errors import Disconnect, ErrorCode
from ottla.protocol.hot.fetch import ABORTED, LEADER, PARTITION_4, PARTITION_5
from ottla.protocol.hot.parts import INT16, INT32
from ottla.protocol.length_check import read_uvarint, skip_tags

NEWEST: Final = 17
BY_ID: Final = 13
_FLEXIBLE: Final = 12
_SESSION: Final = Struct(">hi")
_EPOCH_END: Final = Struct(">iq")
_NOTHING: Final = memoryview(b"")


class PartitionResponse(NamedTuple):
    """The response for one partition."""

    topic: str | UUID
    partition: int
    error_code: int
    high_watermark: int
    stable_offset: int
    log_start: int
    aborted: tuple[tuple[int, int], ...]  # producer id, first offset
    preferred_replica: int
    leader: tuple[int, int] | None  # its id and epoch, if another broker leads
    records: memoryview
    diverging: tuple[int, int] | None = None  # the last epoch in common, and its end offset


class FetchResponse(NamedTuple):
    error_code: ErrorCode
    session_id: int
    partitions: list[PartitionResponse]


def read_fetch_response(version: int, frame: memoryview) -> FetchResponse:
    """Parse a response frame without its size; Disconnect if it is malformed."""
    try:
        return _Reader(version, frame).response()
    except (StructError, IndexError, UnicodeDecodeError, ValueError) as fault:
        raise Disconnect(f"cannot decode Fetch response: {fault}") from None


class _Reader:
    """A position in the frame."""

    def __init__(self, version: int, frame: memoryview) -> None:
        self._version = version
        self._flexible = version >= _FLEXIBLE
        self._frame = frame
        self._position = 4

    def response(self) -> FetchResponse:
        self._skip_tags()
        self._position += 4  # throttle time
        code, session_id = 0, 0
        if self._version >= 7:
            code, session_id = self._unpack(_SESSION)
        partitions = [partition for _ in range(self._count()) for partition in self._topic()]
        return FetchResponse(ErrorCode(code), session_id, partitions)

    def _topic(self) -> Iterator[PartitionResponse]:
        topic = self._topic_id() if self._version >= BY_ID else self._string()
        for _ in range(self._count()):
            yield self._partition(topic)
        self._skip_tags()

    def _partition(self, topic: str | UUID) -> PartitionResponse:
        log_start = -1
        if self._version >= 5:
            index, code, high_watermark, stable, log_start = self._unpack(PARTITION_5)
        else:
            index, code, high_watermark, stable = self._unpack(PARTITION_4)
        aborted = tuple(self._aborted() for _ in range(max(0, self._count())))
        preferred = self._unpack(INT32)[0] if self._version >= 11 else -1
        records = self._bytes()
        leader, diverging = self._tagged_fields()
        return PartitionResponse(
            topic, index, code, high_watermark, stable, log_start, aborted, preferred, leader,
            records, diverging,
        )  # fmt: skip

    def _aborted(self) -> tuple[int, int]:
        producer_id, first_offset = self._unpack(ABORTED)
        self._skip_tags()
        return producer_id, first_offset

    def _tagged_fields(self) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Of a partition: its current leader (tag 1) and the diverging epoch (tag 0)."""
        current_leader: tuple[int, int] | None = None
        diverging: tuple[int, int] | None = None
        if not self._flexible:
            return None, None
        count, self._position = read_uvarint(self._frame, self._position)
        for _ in range(count):
            tag, self._position = read_uvarint(self._frame, self._position)
            size, self._position = read_uvarint(self._frame, self._position)
            if tag == 1:
                leader, epoch, _ = LEADER.unpack_from(self._frame, self._position)
                current_leader = (leader, epoch) if leader >= 0 else None
            elif tag == 0:
                epoch, end = _EPOCH_END.unpack_from(self._frame, self._position)
                diverging = (epoch, end) if end >= 0 else None
            self._position += size
        return current_leader, diverging

    def _bytes(self) -> memoryview:
        size = self._count()
        if size <= 0:
            return _NOTHING
        start, self._position = self._position, self._position + size
        if self._position > len(self._frame):
            raise ValueError("records run past the end")
        return self._frame[start : self._position]

    def _string(self) -> str:
        if self._flexible:
            size, self._position = read_uvarint(self._frame, self._position)
            size -= 1
        else:
            (size,) = self._unpack(INT16)
        start, self._position = self._position, self._position + size
        return str(self._frame[start : self._position], "utf-8")

    def _topic_id(self) -> UUID:
        start, self._position = self._position, self._position + 16
        return UUID(bytes=bytes(self._frame[start : self._position]))

    def _count(self) -> int:
        """The length of an array or of bytes; -1 for null."""
        if self._flexible:
            count, self._position = read_uvarint(self._frame, self._position)
            return count - 1
        return self._unpack(INT32)[0]

    def _skip_tags(self) -> None:
        if self._flexible:
            self._position, _ = skip_tags(self._frame, self._position)

    def _unpack(self, layout: Struct) -> tuple[int, ...]:
        values = layout.unpack_from(self._frame, self._position)
        self._position += layout.size
        return values
