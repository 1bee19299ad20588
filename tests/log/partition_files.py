"""Partition files written for tests, with the log's own writers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ottla.log.files import RealDisk
from ottla.log.segment.segment import Segment, SegmentPosition
from ottla.log.stored_batch import parse
from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord


def write_segment(
    folder: Path, batches: Sequence[bytes], *, base_offset: int = 0, interval_bytes: int = 4_096
) -> Segment:
    """A closed segment of these batches, with its indexes."""
    folder.mkdir(parents=True, exist_ok=True)
    segment = Segment(RealDisk(), folder, base_offset)
    for batch in batches:
        stored = parse(batch, 0, 0)
        mark = SegmentPosition(
            stored.base_offset, stored.last_offset, stored.max_timestamp, stored.size
        )
        segment.append([batch], [mark], interval_bytes)
    segment.file()
    segment.finish()
    segment.release()
    return segment


def batches_of_every_codec(count: int = 5, *, start: int = 0) -> list[bytes]:
    """One batch a codec, with headers, null keys and null values among the records."""
    batches = []
    for codec in Codec:
        batches.append(
            build(_records(count, start), base_offset=start, codec=codec, leader_epoch=3)
        )
        start += count
    return batches


def _records(count: int, start: int) -> Iterable[NewRecord]:
    for number in range(start, start + count):
        yield NewRecord(
            None if number % 4 == 1 else b"key-%d" % number,
            None if number % 4 == 2 else b"value-%d" % number * 3,
            (("first", b"1"), ("empty", None)) if number % 3 == 0 else (),
            1_700_000_000_000 + number,
        )
