"""Buffers of batches to decode, and what a plain reader makes of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ottla.protocol.records.batch import build, walk
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord, Record, read_records
from tests.protocol.records.samples import new_records

codecs = st.sampled_from(Codec)


@st.composite
def buffers(draw: st.DrawFn, max_batches: int = 4) -> bytes:
    """Batches as a log may hold them: any codec, gaps in and between them, either kind of time."""
    parts, offset = [], draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, max_batches))):
        new = draw(st.lists(new_records, max_size=6))
        gaps = draw(st.lists(st.integers(0, 300), min_size=len(new), max_size=len(new)))
        placed, at = [], offset
        for record, gap in zip(new, gaps, strict=True):
            placed.append(Record(at + gap, record.timestamp, *record[:3]))
            at += gap + 1
        tail = draw(st.integers(0, 5))
        batch = build(
            placed,
            base_offset=offset,
            codec=draw(codecs),
            timestamp_type=draw(st.integers(0, 1)),
            leader_epoch=draw(st.integers(-1, 9)),
            last_offset_delta=at - offset + tail,
            delete_horizon_ms=draw(st.none() | st.integers(0, 2**45)),
        )
        parts.append(batch)
        offset = at + tail + 1 + draw(st.integers(0, 100))
    return b"".join(parts)


def plain_rows(buffer: bytes) -> list[dict[str, Any]]:
    """Every record as `decode_batches` shows it, read without a kernel."""
    return [
        {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": header.timestamp_type,
            "leader_epoch": header.leader_epoch,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": key, "value": value} for key, value in record.headers],
        }
        for at, header in walk(buffer)
        for record in read_records(buffer[at : at + header.size])
    ]


def numbered(count: int, at: int = 0, size: int = 1, **options: Any) -> bytes:
    """One batch of records whose values are their offsets."""
    records = [
        NewRecord(None, b"%0*d" % (size, offset), timestamp=1000 + offset)
        for offset in range(at, at + count)
    ]
    return build(records, base_offset=at, **options)
