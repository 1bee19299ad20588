"""Segments of a few small batches, for tests of what a segment does."""

from __future__ import annotations

from pathlib import Path

from ottla.log.segment.segment import Segment, SegmentPosition
from ottla.log.stored_batch import parse
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk

DIR = Path("/d")


def disk() -> ForgettingDisk:
    made = ForgettingDisk(lambda: 555)
    made.mkdir(DIR)
    return made


def put(segment: Segment, content: bytes, interval: int = 0) -> None:
    batch = parse(content, 0, 0)
    mark = SegmentPosition(batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size)
    segment.append([content], [mark], interval)


def batch(base: int, count: int = 1, *, stamp: int = 1_000, size: int = 20) -> bytes:
    records = [NewRecord(b"k", b"v" * size, timestamp=stamp) for _ in range(count)]
    return build(records, base_offset=base)


def filled(on: ForgettingDisk, counts: list[int], interval: int = 0, base: int = 100) -> Segment:
    """Batches of so many records each, a millisecond apart, after a gap of one offset each."""
    segment = Segment(on, DIR, base)
    offset = base
    for number, count in enumerate(counts):
        put(segment, batch(offset, count, stamp=1_000 + number), interval)
        offset += count + 1
    return segment
