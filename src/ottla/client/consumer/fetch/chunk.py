"""Fetched bytes of one partition on their way to the user, decoded when they are wanted.

Owns the place between a fetch and a poll: a chunk is what one reply held for one partition. It is
decoded once, as a whole, by whoever reads it, and handed out in pieces. Never fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, TypeAlias

from ottla.client.consumer.fetch.record_decoder import Aborted, Decoded, RecordRows, decoder, end_of
from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.client.consumer.record import Record, make_records
from ottla.client.errors import SerializationError
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.records.header import CorruptBatch

Read: TypeAlias = Callable[[bytes], Any]
"""A deserializer; None stays None and is never given to it."""


class Chunk:
    """What one fetch brought of one partition."""

    __slots__ = (
        "_at",
        "_left",
        "_more",
        "_rows",
        "aborted",
        "data",
        "end",
        "end_epoch",
        "part",
        "version",
    )

    def __init__(
        self, part: AssignedPartition, version: int, data: memoryview, aborted: Aborted = ()
    ) -> None:
        self.part = part
        self.version = version  # of the partition when it was asked for
        self.data = data
        self.aborted = aborted
        self.end, self.end_epoch = end_of(data)
        self._rows = RecordRows()
        self._at = 0
        self._left: tuple[memoryview, Aborted] = (data, aborted)  # to decode
        self._more = True

    @property
    def is_current(self) -> bool:
        """False once its partition is gone, or is read from elsewhere."""
        return self.version == self.part.version

    def take(self, most: int, reading: ChunkReader) -> tuple[list[Record[Any, Any]], bool]:
        """The next records, at most so many, and whether these were the last."""
        if self._at == len(self._rows.offsets) and self._more:
            self._decode(reading)
        found, start, total = self._rows, self._at, len(self._rows.offsets)
        end = min(start + most, total)
        records = reading.records(self.part, found.between(start, end))
        self._at = start + len(records)  # one that did not deserialize is the next one
        return records, self._at == total and not self._more

    def _decode(self, reading: ChunkReader) -> None:
        view, aborted = self._left
        found = reading.decoded(self.part, view, aborted)
        self._rows, self._at, self._more = found.rows, 0, found.more
        self._left = view[found.consumed :], found.aborted


class ChunkReader:
    """How a consumer turns bytes into records."""

    def __init__(self, key: Read | None, value: Read | None, *, check_crc: bool) -> None:
        self._key = key
        self._value = value
        self.check_crc = check_crc

    def decoded(self, part: AssignedPartition, view: memoryview, aborted: Aborted) -> Decoded:
        try:
            return decoder()(view, part.offset, aborted, check_crc=self.check_crc)
        except CorruptBatch as fault:
            raise corrupt_batch(part, fault) from None

    def records(self, part: AssignedPartition, found: RecordRows) -> list[Record[Any, Any]]:
        """As many as deserialize; SerializationError when the first one does not."""
        keys, values = found.keys, found.values
        try:
            keys, values = _read(self._key, keys), _read(self._value, values)
        except Exception:
            good = self._deserializable_count(part, found)
            found = found.between(0, good)
            keys, values = _read(self._key, found.keys), _read(self._value, found.values)
        topic, partition = part.tp
        return make_records(
            zip(
                repeat(topic), repeat(partition), found.offsets, found.timestamps, found.types,
                keys, values, found.headers, found.epochs,
            )
        )  # fmt: skip

    def _deserializable_count(self, part: AssignedPartition, found: RecordRows) -> int:
        """How many records in a row deserialize."""
        for at, (key, value) in enumerate(zip(found.keys, found.values, strict=True)):
            try:
                _read(self._key, [key])
                _read(self._value, [value])
            except Exception as error:
                if at:
                    return at
                raise SerializationError(
                    f"{part.tp} at offset {found.offsets[at]} does not deserialize: {error!r}; "
                    "seek past it to go on without"
                ) from error
        return len(found.offsets)


def _read(read: Read | None, column: Sequence[bytes | None]) -> Sequence[Any]:
    if read is None:
        return column
    return [None if data is None else read(data) for data in column]


def corrupt_batch(part: AssignedPartition, fault: CorruptBatch) -> KafkaError:
    return KafkaError(
        ErrorCode.corrupt_message,
        f"{part.tp} at offset {part.offset} does not read: {fault}; seek past it to go on without",
    )
