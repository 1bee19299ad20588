"""Fetched bytes of one partition, decoded when they are read.

Owns the state between a fetch and a poll: a chunk is the data of one partition in one response. It
is decoded once, as a whole, by the reading thread, and returned in pieces. Never fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TypeAlias

from ottla.client.consumer.fetch.record_decoder import Aborted, Decoded, RecordRows, decoder, end_of
from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.client.consumer.record import AnyRecord, make_records
from ottla.client.errors import SerializationError
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.records.header import CorruptBatch

Read: TypeAlias = Callable[[bytes], object]
"""A deserializer; it is never called for None, which stays None."""


class Chunk:
    """The data of one partition in one fetch response."""

    __slots__ = (
        "_more",
        "_position",
        "_rows",
        "_undecoded",
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
        self.version = version  # of the partition when it was requested
        self.data = data
        self.aborted = aborted
        self.end, self.end_epoch = end_of(data)
        self._rows = RecordRows()
        self._position = 0
        self._undecoded: tuple[memoryview, Aborted] = (data, aborted)  # to decode
        self._more = True

    @property
    def is_current(self) -> bool:
        """False once its partition is revoked, or its position has changed."""
        return self.version == self.part.version

    def take(self, most: int, reading: ChunkReader) -> tuple[list[AnyRecord], bool]:
        """The next records, at most `most`, and whether these were the last."""
        if self._position == len(self._rows.offsets) and self._more:
            self._decode(reading)
        rows, start, total = self._rows, self._position, len(self._rows.offsets)
        end = min(start + most, total)
        records = reading.records(self.part, rows.between(start, end))
        self._position = start + len(records)  # one that failed to deserialize is the next one
        return records, self._position == total and not self._more

    def _decode(self, reading: ChunkReader) -> None:
        view, aborted = self._undecoded
        decoded = reading.decode(self.part, view, aborted)
        self._rows, self._position, self._more = decoded.rows, 0, decoded.more
        self._undecoded = view[decoded.consumed :], decoded.aborted


class ChunkReader:
    """Turns bytes into records."""

    def __init__(self, key: Read | None, value: Read | None, *, check_crc: bool) -> None:
        self._key = key
        self._value = value
        self.check_crc = check_crc

    def decode(self, part: AssignedPartition, view: memoryview, aborted: Aborted) -> Decoded:
        try:
            return decoder()(view, part.offset, aborted, check_crc=self.check_crc)
        except CorruptBatch as fault:
            raise corrupt_batch(part, fault) from None

    def records(self, part: AssignedPartition, rows: RecordRows) -> list[AnyRecord]:
        """The records before the first that fails to deserialize, or SerializationError."""
        try:
            keys = _deserialize(self._key, rows.keys)
            values = _deserialize(self._value, rows.values)
        except Exception:
            rows = rows.between(0, self._deserializable_count(part, rows))
            keys = _deserialize(self._key, rows.keys)
            values = _deserialize(self._value, rows.values)
        topic, partition = part.tp
        return make_records(
            zip(
                repeat(topic), repeat(partition), rows.offsets, rows.timestamps, rows.types,
                keys, values, rows.headers, rows.epochs,
            )
        )  # fmt: skip

    def _deserializable_count(self, part: AssignedPartition, rows: RecordRows) -> int:
        """How many records, from the first, can be deserialized."""
        for index, (key, value) in enumerate(zip(rows.keys, rows.values, strict=True)):
            try:
                _deserialize(self._key, [key])
                _deserialize(self._value, [value])
            except Exception as error:
                if index:
                    return index
                raise SerializationError(
                    f"cannot deserialize {part.tp} at offset {rows.offsets[index]}: {error!r}; "
                    "seek past it to skip the record"
                ) from error
        return len(rows.offsets)


def _deserialize(deserializer: Read | None, column: Sequence[bytes | None]) -> Sequence[object]:
    if deserializer is None:
        return column
    return [None if data is None else deserializer(data) for data in column]


def corrupt_batch(part: AssignedPartition, fault: CorruptBatch) -> KafkaError:
    return KafkaError(
        ErrorCode.corrupt_message,
        f"cannot decode {part.tp} at offset {part.offset}: {fault}; seek past it to skip the batch",
    )
