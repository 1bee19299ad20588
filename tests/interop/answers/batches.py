"""Record batches, good and bad, made when they are sent because they may hold a side's ids.

Owns: their bytes. Never: sends them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ottla.protocol.records.batch import CRC, build, compute_crc
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import CRC_AT, HEADER_SIZE
from ottla.protocol.records.record import NewRecord

STAMP_MS: Final = 1_700_000_000_000
MAGIC_AT: Final = 16
COUNT_AT: Final = 57
DELTA_AT: Final = 23
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35
LENGTH_AT: Final = 8


@dataclass(frozen=True)
class Batch:
    """One batch, and what is done to its bytes before they leave."""

    records: Sequence[NewRecord]
    header: dict[str, Any] = field(default_factory=dict)
    changes: tuple[Callable[[bytearray], bytearray], ...] = ()

    def resolve(self, resolve: Callable[[Any], Any]) -> bytes:
        data = bytearray(build(self.records, **resolve(self.header)))
        for change in self.changes:
            data = change(data)
        return bytes(data)

    def but(self, *changes: Callable[[bytearray], bytearray]) -> Batch:
        return replace(self, changes=(*self.changes, *changes))


@dataclass(frozen=True)
class Joined:
    """Several batches, one after the other."""

    batches: Sequence[Batch]

    def resolve(self, resolve: Callable[[Any], Any]) -> bytes:
        return b"".join(batch.resolve(resolve) for batch in self.batches)


def batch(*values: str, key: bytes | None = b"key", stamp: int = STAMP_MS, **header: Any) -> Batch:
    """A batch of records with one key, one time and these values."""
    return Batch([NewRecord(key, value.encode(), (), stamp) for value in values], header)


def put(at: int, data: bytes, *, checksum: bool = True) -> Callable[[bytearray], bytearray]:
    """These bytes at this place, and a checksum that fits, or the old one."""

    def change(batch: bytearray) -> bytearray:
        batch[at : at + len(data)] = data
        return checked(batch) if checksum else batch

    return change


def checked(batch: bytearray) -> bytearray:
    CRC.pack_into(batch, CRC_AT, compute_crc(batch))
    return batch


def cut(size: int) -> Callable[[bytearray], bytearray]:
    """Without its last bytes; the length still counts them."""
    return lambda batch: batch[:-size]


def tail(data: bytes) -> Callable[[bytearray], bytearray]:
    """With these bytes after it."""
    return lambda batch: batch + data


def num(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


GOOD: Final = batch("a", "b", "c")
MANY: Final = "value" * 300
# Every batch that a broker has to refuse, or to mend. The codes are Apache Kafka's to say.
ODD: Final[dict[str, Any]] = {
    "no bytes": b"",
    "a few bytes": b"\0" * 10,
    "zeros as long as a header": b"\0" * HEADER_SIZE,
    "two batches": Joined([batch("a"), batch("b")]),
    "magic 0": GOOD.but(put(MAGIC_AT, b"\0")),
    "magic 1": GOOD.but(put(MAGIC_AT, b"\1")),
    "magic 3": GOOD.but(put(MAGIC_AT, b"\3")),
    "magic -1": GOOD.but(put(MAGIC_AT, b"\xff")),
    "a wrong checksum": GOOD.but(put(CRC_AT, b"\1\2\3\4", checksum=False)),
    "a negative length": GOOD.but(put(LENGTH_AT, num(-1, 4))),
    "a length of nought": GOOD.but(put(LENGTH_AT, num(0, 4))),
    "a length shorter than a header": GOOD.but(put(LENGTH_AT, num(20, 4))),
    "a length past the end": GOOD.but(put(LENGTH_AT, num(1000, 4))),
    "its end cut off": GOOD.but(cut(3)),
    "bytes after it": GOOD.but(tail(b"\0\0\0")),
    "a base offset of 5": batch("a", "b", base_offset=5),
    "a negative base offset": GOOD.but(put(0, num(-1, 8), checksum=False)),
    "a leader epoch": batch("a", leader_epoch=9),
    "a count one too low": GOOD.but(put(COUNT_AT, num(2, 4))),
    "a count one too high": GOOD.but(put(COUNT_AT, num(4, 4))),
    "a count of nought": GOOD.but(put(COUNT_AT, num(0, 4))),
    "a negative count": GOOD.but(put(COUNT_AT, num(-1, 4))),
    "a last delta too low": GOOD.but(put(DELTA_AT, num(1, 4))),
    "a last delta too high": GOOD.but(put(DELTA_AT, num(3, 4))),
    "a count and a delta too high": GOOD.but(put(DELTA_AT, num(3, 4)), put(COUNT_AT, num(4, 4))),
    "a count and a delta too low": GOOD.but(put(DELTA_AT, num(1, 4)), put(COUNT_AT, num(2, 4))),
    "a first record longer than the batch": GOOD.but(put(HEADER_SIZE, b"\x7e")),
    "a first record of negative length": GOOD.but(put(HEADER_SIZE, b"\x01")),
    "a header count of -1": batch("a").but(lambda data: checked(data[:-1] + b"\1")),
    "a header count far too high": batch("a").but(lambda data: checked(data[:-1] + b"\x7e")),
    "a control bit": batch("a", control=True),
    "a transactional bit": batch("a", transactional=True),
    "a delete horizon": batch("a", delete_horizon_ms=STAMP_MS),
    "an unknown codec": GOOD.but(put(ATTRIBUTES_AT, num(5, 2))),
    "a codec that it was not packed with": GOOD.but(put(ATTRIBUTES_AT, num(1, 2))),
    "unknown attributes": GOOD.but(put(ATTRIBUTES_AT, num(0x100, 2))),
    "log append time": batch("a", timestamp_type=1),
    "a wrong newest time": GOOD.but(put(MAX_TIMESTAMP_AT, num(STAMP_MS - 5, 8))),
    "no times": batch("a", stamp=-1),
    "times far in the future": batch("a", "b", stamp=4_000_000_000_000),
    "times in the distant past": batch("a", stamp=1),
    "a producer id without a sequence": batch("a", producer_id=5, producer_epoch=0),
    "a producer id without an epoch": batch("a", producer_id=5, base_sequence=0),
    "null keys": batch("a", key=None),
    "null values": Batch([NewRecord(b"k", None, (), STAMP_MS)]),
    "headers": Batch([NewRecord(b"k", b"v", (("h", b"1"), ("h", None)), STAMP_MS)]),
    "gzip": batch(MANY, MANY, codec=Codec.GZIP),
    "snappy": batch(MANY, MANY, codec=Codec.SNAPPY),
    "lz4": batch(MANY, MANY, codec=Codec.LZ4),
    "zstd": batch(MANY, MANY, codec=Codec.ZSTD),
    "gzip whose bytes are damaged": batch(MANY, codec=Codec.GZIP).but(
        put(HEADER_SIZE + 12, b"\xff\xff")
    ),
    "more bytes than a message may have": batch("x" * 1_100_000),
}
