"""The columns of a batch to bytes, and bytes under another number.

Owns: which encoder is used: the native kernel where the extra `arrow` is installed, plain Python
elsewhere; both give the same bytes. Never decides what goes into a batch.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.client.producer.batch import NS_PER_MS, Batch, Stamp
from ottla.protocol.records.batch import CRC, build, compute_crc
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import ATTRIBUTES_AT, CRC_AT, TRANSACTIONAL_BIT
from ottla.protocol.records.record import NewRecord, read_records

NOBODY: Final = Stamp(-1, -1, -1)
PRODUCER: Final = struct.Struct(">qhi")
PRODUCER_AT: Final = 43
ATTRIBUTES: Final = struct.Struct(">h")


class Encoder:
    """Turns batches into bytes with one codec."""

    def __init__(self, codec: str, level: int | None) -> None:
        self._codec = Codec[codec.upper()]
        self._level = level

    def encode(self, batch: Batch) -> None:
        """See to it that `batch.encoded` carries the batch's stamp."""
        stamp = batch.stamp or NOBODY
        if batch.encoded is None:
            batch.encoded = self._encoded(batch, stamp)
        elif PRODUCER.unpack_from(batch.encoded, PRODUCER_AT) != stamp or (
            batch.transactional and not is_transactional(batch.encoded)
        ):
            batch.encoded = restamped(batch.encoded, stamp, transactional=batch.transactional)

    def _encoded(self, batch: Batch, stamp: Stamp) -> bytes:
        keys = batch.keys or [None] * batch.records
        headers = batch.headers or {}
        records = [
            NewRecord(key, value, headers.get(at, ()), timestamp_ns // NS_PER_MS)
            for at, (key, value, timestamp_ns) in enumerate(
                zip(keys, batch.values, batch.timestamps, strict=True)
            )
        ]
        return build(
            records,
            codec=self._codec,
            level=self._level,
            producer_id=stamp.producer_id,
            producer_epoch=stamp.epoch,
            base_sequence=stamp.sequence,
            transactional=batch.transactional,
        )

    def split(self, batch: Batch, most_bytes: int) -> list[Batch]:
        """Batches of at most `most_bytes` each, where a record allows it, with the same records."""
        assert batch.encoded is not None
        parts: list[Batch] = []
        for record in read_records(batch.encoded):
            size = 12 + len(record.key or b"") + len(record.value or b"")
            if not parts or (parts[-1].room < size and parts[-1].values):
                part = Batch(batch.tp, most_bytes, 0, batch.created_ms, batch.lock)
                part.ordinal = batch.ordinal
                part.transactional = batch.transactional
                part.attempts = batch.attempts
                parts.append(part)
            parts[-1].append(
                record.key, record.value, tuple(record.headers), record.timestamp * NS_PER_MS
            )
        parts[0].reserved = batch.reserved  # given back once
        for part in parts:
            part.close()
        return parts


def is_transactional(encoded: bytes | memoryview) -> bool:
    (attributes,) = ATTRIBUTES.unpack_from(encoded, ATTRIBUTES_AT)
    return bool(attributes & TRANSACTIONAL_BIT)


def restamped(encoded: bytes | memoryview, stamp: Stamp, *, transactional: bool) -> bytes:
    """The same batch from another producer, or under another number."""
    copy = bytearray(encoded)
    (attributes,) = ATTRIBUTES.unpack_from(copy, ATTRIBUTES_AT)
    bit = TRANSACTIONAL_BIT if transactional else 0
    ATTRIBUTES.pack_into(copy, ATTRIBUTES_AT, attributes & ~TRANSACTIONAL_BIT | bit)
    PRODUCER.pack_into(copy, PRODUCER_AT, *stamp)
    CRC.pack_into(copy, CRC_AT, compute_crc(copy))
    return bytes(copy)
