"""The reply to a Fetch, taken apart in place: records stay views into the frame.

Owns the layout of versions 4 to 17. Hot: benchmarks/clients_consumer.py. kio would copy every
record set once; the tests hold this to what kio reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple
from uuid import UUID

from ottla.model.errors import Disconnect, ErrorCode
from ottla.protocol.length_check import read_uvarint, skip_tags

NEWEST: Final = 17
BY_ID: Final = 13
_FLEXIBLE: Final = 12
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_SESSION: Final = Struct(">hi")
_PARTITION_4: Final = Struct(">ihqq")
_PARTITION_5: Final = Struct(">ihqqq")
_ABORTED: Final = Struct(">qq")
_LEADER: Final = Struct(">ii")
_NOTHING: Final = memoryview(b"")


class PartitionResponse(NamedTuple):
    """What came of one partition."""

    topic: str | UUID
    partition: int
    error_code: int
    high_watermark: int
    stable_offset: int
    log_start: int
    aborted: tuple[tuple[int, int], ...]  # producer id, first offset
    preferred_replica: int
    leader: tuple[int, int] | None  # its id and epoch, when it is not who was asked
    records: memoryview


class FetchResponse(NamedTuple):
    error_code: ErrorCode
    session_id: int
    partitions: list[PartitionResponse]


def read_fetch_response(version: int, frame: memoryview) -> FetchResponse:
    """A reply frame without its size; Disconnect if it does not read."""
    try:
        return _Reader(version, frame).reply()
    except (StructError, IndexError, UnicodeDecodeError, ValueError) as fault:
        raise Disconnect(f"fetch reply does not read: {fault}") from None


class _Reader:
    """A place in the frame."""

    def __init__(self, version: int, frame: memoryview) -> None:
        self._version = version
        self._flexible = version >= _FLEXIBLE
        self._frame = frame
        self._at = 4

    def reply(self) -> FetchResponse:
        self._skip_tags()
        self._at += 4  # throttle time
        code, session_id = 0, 0
        if self._version >= 7:
            code, session_id = self._unpack(_SESSION)
        partitions = [each for _ in range(self._count()) for each in self._topic()]
        return FetchResponse(ErrorCode(code), session_id, partitions)

    def _topic(self) -> Iterator[PartitionResponse]:
        topic = self._topic_id() if self._version >= BY_ID else self._string()
        for _ in range(self._count()):
            yield self._partition(topic)
        self._skip_tags()

    def _partition(self, topic: str | UUID) -> PartitionResponse:
        log_start = -1
        if self._version >= 5:
            index, code, high_watermark, stable, log_start = self._unpack(_PARTITION_5)
        else:
            index, code, high_watermark, stable = self._unpack(_PARTITION_4)
        aborted = tuple(self._aborted() for _ in range(max(0, self._count())))
        preferred = self._unpack(_INT32)[0] if self._version >= 11 else -1
        records = self._bytes()
        leader = self._leader()
        return PartitionResponse(
            topic, index, code, high_watermark, stable, log_start, aborted, preferred, leader,
            records,
        )  # fmt: skip

    def _aborted(self) -> tuple[int, int]:
        producer_id, first_offset = self._unpack(_ABORTED)
        self._skip_tags()
        return producer_id, first_offset

    def _leader(self) -> tuple[int, int] | None:
        """The tagged fields of a partition: only tag 1 says something to a consumer."""
        if not self._flexible:
            return None
        found: tuple[int, int] | None = None
        count, self._at = read_uvarint(self._frame, self._at)
        for _ in range(count):
            tag, self._at = read_uvarint(self._frame, self._at)
            size, self._at = read_uvarint(self._frame, self._at)
            if tag == 1:
                leader, epoch = _LEADER.unpack_from(self._frame, self._at)
                found = (leader, epoch) if leader >= 0 else None
            self._at += size
        return found

    def _bytes(self) -> memoryview:
        size = self._count()
        if size <= 0:
            return _NOTHING
        start, self._at = self._at, self._at + size
        if self._at > len(self._frame):
            raise ValueError("records run past the end")
        return self._frame[start : self._at]

    def _string(self) -> str:
        if self._flexible:
            size, self._at = read_uvarint(self._frame, self._at)
            size -= 1
        else:
            (size,) = self._unpack(_INT16)
        start, self._at = self._at, self._at + size
        return str(self._frame[start : self._at], "utf-8")

    def _topic_id(self) -> UUID:
        start, self._at = self._at, self._at + 16
        return UUID(bytes=bytes(self._frame[start : self._at]))

    def _count(self) -> int:
        """The length of an array or of bytes; -1 for null."""
        if self._flexible:
            count, self._at = read_uvarint(self._frame, self._at)
            return count - 1
        return self._unpack(_INT32)[0]

    def _skip_tags(self) -> None:
        if self._flexible:
            self._at, _ = skip_tags(self._frame, self._at)

    def _unpack(self, layout: Struct) -> tuple[int, ...]:
        values = layout.unpack_from(self._frame, self._at)
        self._at += layout.size
        return values
