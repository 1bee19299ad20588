"""Encodes the columns of a batch, and rewrites its producer stamp.

Owns: the choice of encoder: the native kernel if the extra `arrow` is installed, else plain Python;
both produce the same bytes. Never decides what goes into a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ottla.client.producer.buffer.batch import NS_PER_MS, RECORD_OVERHEAD, Batch, ProducerStamp
from ottla.protocol.records.batch import build, stamp
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord, read_records

NO_PRODUCER: Final = ProducerStamp(-1, -1, -1)
NATIVE_MIN_RECORDS: Final = 24
"""Number of records from which on the native kernel is faster, including its call."""
NO_LIMIT: Final = 1 << 40

Encode: TypeAlias = Callable[[Batch, Codec, int | None], bytearray | memoryview]


class Encoder:
    """Turns batches into bytes with one codec."""

    def __init__(self, codec: str, level: int | None) -> None:
        self._codec = Codec[codec.upper()]
        self._level = level
        self.native: Encode | None = None
        """The kernel, once it is loaded."""

    def encode(self, batch: Batch) -> None:
        """Set `batch.encoded`, with the batch's producer stamp."""
        if batch.encoded is None:
            estimate_bytes = batch.size
            use_native = self.native is not None and batch.records >= NATIVE_MIN_RECORDS
            encode = self.native if use_native and self.native is not None else encode_plain
            batch.encoded = encode(batch, self._codec, self._level)
            is_plain = self._codec is Codec.NONE
            batch.plain_bytes = batch.size if is_plain else estimate_bytes
        elif batch.written == batch.stamp:
            return
        producer_id, epoch, sequence = batch.stamp or NO_PRODUCER
        stamp(
            batch.encoded,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=batch.transactional,
            checksum=batch.checksum,
        )
        batch.written = batch.stamp

    def split(self, batch: Batch, most_bytes: int) -> list[Batch]:
        """Split into batches of at most `most_bytes`, unless a single record is larger."""
        assert batch.encoded is not None
        parts: list[Batch] = []
        for record in read_records(batch.encoded):
            size = RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
            if not parts or (parts[-1].room < size and parts[-1].values):
                part = Batch(batch.tp, most_bytes, 0, batch.created_ms, batch.lock)
                part.ordinal = (*batch.ordinal, len(parts))
                part.transactional = batch.transactional
                part.attempts = batch.attempts
                part.leader_epoch = batch.leader_epoch
                parts.append(part)
            parts[-1].append(
                record.key, record.value, tuple(record.headers), record.timestamp * NS_PER_MS
            )
        parts[0].reserved = batch.reserved  # freed once
        for part in parts:
            part.close()
        return parts


def encode_plain(batch: Batch, codec: Codec, level: int | None) -> bytearray:
    """A batch encoded in Python."""
    keys = batch.keys or [None] * batch.records
    headers = batch.headers or {}
    rows = zip(keys, batch.values, batch.timestamps, strict=True)
    records = [
        NewRecord(key, value, headers.get(index, ()), timestamp_ns // NS_PER_MS)
        for index, (key, value, timestamp_ns) in enumerate(rows)
    ]
    return bytearray(build(records, codec=codec, level=level))


def load_native() -> Encode | None:
    """The compiled kernel that encodes columns; None if it is not installed. Takes a while."""
    try:
        import numpy as np

        from ottla.protocol.records.columns.encode import encode_batches
    except ImportError:
        return None

    def native(batch: Batch, codec: Codec, level: int | None) -> memoryview:
        headers = None
        if batch.headers is not None:
            headers = [batch.headers.get(index, ()) for index in range(batch.records)]
        (encoded,) = encode_batches(
            batch.keys,
            batch.values,
            headers,
            np.fromiter(batch.timestamps, np.int64, batch.records) // NS_PER_MS,
            codec=codec,
            level=level,
            max_batch_bytes=NO_LIMIT,
            finish=False,
        )
        return encoded.data

    encode_batches([b""], [b""])  # compiles what is not cached on disk: without
    encode_batches([b""], [b""], [(("", b""),)], [0])  # and with headers
    return native
