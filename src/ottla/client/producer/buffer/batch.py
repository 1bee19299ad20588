"""One batch of one partition, from its first record to its outcome.

Owns: the appended records, their encoded bytes, and the waiters for the outcome. Never chooses a
partition, reads a clock or sends.

A batch keeps its records as columns (values, keys, …), because they are encoded all at once, and
one outcome for all: a record's own result is computed on demand. Appending a record costs two list
appends. Hot: benchmarks/clients_producer.py.

Code that changes a batch which other threads may use holds `lock`, the accumulator's.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import compute_crc
from ottla.protocol.records.compression import Bytes
from ottla.protocol.records.header import HEADER_SIZE

if TYPE_CHECKING:
    from ottla.client.producer.delivery import Delivery

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
NS_PER_MS: Final = 1_000_000
RECORD_OVERHEAD: Final = 12
"""Bytes of a small record that are not its key or value: lengths, deltas, a count of headers."""
LARGE: Final = 8_000
LARGE_OVERHEAD: Final = 8
"""Lengths of large fields take a few bytes more."""
UNKNOWN_OFFSET: Final = -1


class RecordMetadata(NamedTuple):
    """The offset and timestamp of an acknowledged record."""

    topic: str
    partition: int
    offset: int
    """-1 if the broker does not return it (acks=0)."""
    timestamp: int
    """Milliseconds since 1970: the record's own, or the broker's with LogAppendTime."""


class PreparedRecord(NamedTuple):
    """A serialized record with its partition."""

    tp: TopicPartition
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ns: int
    sticky: bool
    """Records without a key may follow it into its batch by the fast path."""

    @property
    def size(self) -> int:
        return size_of(self.key, self.value, self.headers)


class ProducerStamp(NamedTuple):
    """Producer id, epoch and base sequence of a batch."""

    producer_id: int
    epoch: int
    sequence: int


Lock: TypeAlias = AbstractContextManager[bool, bool | None]
Callback: TypeAlias = Callable[["Delivery"], object]
Watcher: TypeAlias = Callable[[], object]


class Batch:
    """Records of one partition that are sent together."""

    __slots__ = (
        "_callbacks", "_event", "_parts", "_watchers",
        "append_time_ms", "attempts", "base_offset", "checksum", "created_ms", "encoded", "error",
        "headers", "is_closed", "is_done", "keys", "leader_epoch", "limit", "lock", "ordinal",
        "plain_bytes", "records", "reserved", "retry_at_ms", "room", "stamp", "timestamps", "tp",
        "transactional", "values", "written",
    )  # fmt: skip

    def __init__(
        self, tp: TopicPartition, room: int, reserved: int, now_ms: MonoMs, lock: Lock
    ) -> None:
        self.tp = tp
        self.limit = room
        self.room = room - HEADER_SIZE
        """Bytes that may still be appended; an empty batch takes a record of any size."""
        self.ordinal: tuple[int, ...] = ()  # batches of a partition go out in this order
        self.reserved = reserved
        """Bytes of the buffer memory that are freed with the outcome."""
        self.created_ms = now_ms
        self.lock = lock
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] | None = None  # None: no record has one
        self.headers: dict[int, Headers] | None = None
        self.timestamps: list[int] = []  # nanoseconds
        self.records = 0  # counted when the batch is closed
        self.is_closed = False
        self.transactional = False
        self.encoded: bytearray | memoryview | None = None
        self.plain_bytes = 0  # before compression; known once it is encoded
        self.checksum: Callable[[Bytes], int] = compute_crc
        """Computes the checksum of `encoded`; a faster way if that of the records is known."""
        self.written: ProducerStamp | None = None  # the stamp that `encoded` carries
        self.stamp: ProducerStamp | None = None
        self.attempts = 0
        self.leader_epoch = -1  # that the metadata had when the batch was last sent
        self.retry_at_ms = MonoMs(0)
        self.is_done = False
        self.error: BaseException | None = None
        self.base_offset = UNKNOWN_OFFSET
        self.append_time_ms = -1
        self._event: threading.Event | None = None
        self._callbacks: list[tuple[int, Callback, Delivery]] = []
        self._watchers: list[Watcher] = []
        self._parts: tuple[list[int], list[Batch]] | None = None

    def append(
        self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ns: int
    ) -> int:
        """Append a record; its index in the batch. The caller has checked `room`."""
        index = len(self.values)
        self.values.append(value)
        self.timestamps.append(timestamp_ns)
        if self.keys is not None:
            self.keys.append(key)
        elif key is not None:
            self.keys = [None] * index
            self.keys.append(key)
        if headers:
            if self.headers is None:
                self.headers = {}
            self.headers[index] = headers
        self.room -= size_of(key, value, headers)
        return index

    def grow(self, more: int) -> None:
        """Raise the size limit; the memory was reserved by the caller."""
        self.limit += more
        self.room += more
        self.reserved += more

    def close(self) -> None:
        """No more records."""
        if not self.is_closed:
            self.is_closed = True
            self.records = len(self.values)

    @property
    def size(self) -> int:
        """Bytes in a request; an estimate until it is encoded."""
        return len(self.encoded) if self.encoded is not None else self.limit - self.room

    @property
    def last_sequence(self) -> int:
        assert self.stamp is not None
        return (self.stamp.sequence + self.records - 1) & 0x7FFF_FFFF

    # the outcome

    def succeed(self, base_offset: int, append_time_ms: int) -> None:
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms
        self._finish()

    def fail(self, error: BaseException) -> None:
        self.error = error
        self._finish()

    def _finish(self) -> None:
        with self.lock:
            assert not self.is_done, f"{self.tp}: a batch has one outcome"
            self.is_done = True
            callbacks, self._callbacks = self._callbacks, []
            # Free the records: results may be kept for long.
            self.values, self.keys, self.headers, self.encoded = [], None, None, None
        callbacks.sort(key=_place)
        for _, callback, delivery in callbacks:
            callback(delivery)
        self._notify()

    def _notify(self) -> None:
        with self.lock:
            event, watchers = self._event, self._watchers
            self._event, self._watchers = None, []
        if event is not None:
            event.set()
        for watcher in watchers:
            watcher()

    def metadata(self, index: int) -> RecordMetadata:
        """The metadata of one record; raises the error of the batch."""
        if self.error is not None:
            raise self.error
        stamped = self.append_time_ms < 0 and index < len(self.timestamps)
        return RecordMetadata(
            self.tp.topic,
            self.tp.partition,
            UNKNOWN_OFFSET if self.base_offset < 0 else self.base_offset + index,
            self.timestamps[index] // NS_PER_MS if stamped else self.append_time_ms,
        )

    # waiting for the outcome

    def wait(self, timeout: float | None) -> bool:
        """Block until the batch has its outcome or was split; False after the timeout."""
        with self.lock:
            if self.is_done or self._parts is not None:
                return True
            if self._event is None:
                self._event = threading.Event()
            event = self._event
        return event.wait(timeout)

    def watch(self, watcher: Watcher) -> bool:
        """Call `watcher` when the batch has its outcome or is split; False: it already has."""
        with self.lock:
            if self.is_done or self._parts is not None:
                return False
            self._watchers.append(watcher)
            return True

    def add_callback(self, index: int, callback: Callback, delivery: Delivery) -> bool:
        """Call `callback` with the outcome, in the order of the records; False: too late."""
        with self.lock:
            if self.is_done or self._parts is not None:
                return False
            self._callbacks.append((index, callback, delivery))
            return True

    # splitting a batch that was too large

    def split_into(self, parts: Sequence[Batch]) -> None:
        """Replace this batch by smaller ones, with its records and callbacks."""
        starts: list[int] = []
        count = 0
        for part in parts:
            starts.append(count)
            count += part.records
        with self.lock:
            self._parts = (starts, list(parts))
            for index, callback, delivery in self._callbacks:
                part, part_index = self.part(index)
                part._callbacks.append((part_index, callback, delivery))
            self._callbacks = []
            self.values, self.keys, self.headers, self.encoded = [], None, None, None
        self._notify()

    def part(self, index: int) -> tuple[Batch, int]:
        """The batch that now has the record at `index`, and its index there."""
        if self._parts is None:
            return self, index
        starts, batches = self._parts
        nth = bisect_right(starts, index) - 1
        return batches[nth].part(index - starts[nth])

    @property
    def successors(self) -> list[Batch]:
        """This batch, or the ones it was split into."""
        if self._parts is None:
            return [self]
        return [successor for part in self._parts[1] for successor in part.successors]


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """An estimate of a record's bytes in a batch; never much too small."""
    size = RECORD_OVERHEAD + (len(value) if value else 0) + (len(key) if key else 0)
    for name, content in headers:
        size += 4 + 4 * len(name) + (len(content) if content else 0)
    return size if size < LARGE else size + LARGE_OVERHEAD


def _place(entry: tuple[int, Callback, Delivery]) -> int:
    return entry[0]
