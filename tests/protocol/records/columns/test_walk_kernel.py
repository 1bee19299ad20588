"""Ordinary batches are walked natively to the letter as they would be one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from ottla.protocol.records.batch import build, walk
from ottla.protocol.records.columns.gather import EVERYTHING
from ottla.protocol.records.columns.native import as_array
from ottla.protocol.records.columns.read_kernels import (
    BASE_OFFSET,
    CHECKSUM,
    COUNT,
    START,
    STOP,
    TABLE_COLUMNS,
    Span,
)
from ottla.protocol.records.columns.walk_kernel import walk_ordinary
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import CODEC_BITS, CONTROL_BIT, HEADER, BatchHeader
from ottla.protocol.records.record import NewRecord
from tests.protocol.records.columns.batches import buffers, numbered

SPECIAL = CODEC_BITS | CONTROL_BIT
LARGE = 1 << 40


def walked(
    buffer: bytes, span: Span = EVERYTHING, left: int = LARGE, room: int = 100
) -> tuple[list[list[int]], int, int, int, int]:
    table = np.empty((room, TABLE_COLUMNS), np.int64)
    state = SPECIAL, left, span.start_offset
    count, *rest = walk_ordinary(as_array(buffer), 0, span, state, table)
    at, left, next_offset, epoch = rest
    return table[:count].tolist(), at, left, next_offset, epoch


@given(buffers())
def test_it_stops_at_the_first_batch_that_is_compressed(buffer: bytes) -> None:
    ordinary = []
    for at, header in walk(buffer):
        if header.attributes & SPECIAL:
            break
        ordinary.append((at, header))
    rows, at, _, next_offset, epoch = walked(buffer)
    assert [
        (row[START], row[STOP], row[COUNT], row[BASE_OFFSET], row[CHECKSUM]) for row in rows
    ] == [
        (at + HEADER.size, at + header.size, header.count, header.base_offset, header.crc)
        for at, header in ordinary
    ]
    end = ordinary[-1] if ordinary else None
    assert at == (end[0] + end[1].size if end else 0)
    assert next_offset == (end[1].next_offset if end else 0)
    assert epoch == (end[1].leader_epoch if end else -1)


def changed(**fields: int) -> bytes:
    batch = numbered(3)
    header = BatchHeader._make(HEADER.unpack_from(batch))._replace(**fields)
    return HEADER.pack(*header) + batch[HEADER.size :]


@pytest.mark.parametrize(
    "batch",
    [
        b"",
        numbered(3)[:-1],
        numbered(3)[:60],
        changed(base_offset=-1),
        changed(base_offset=2**63 - 1),
        changed(last_offset_delta=-2),
        changed(count=-1),
        changed(count=2**31 - 1),
        changed(attributes=Codec.ZSTD),
        changed(attributes=CONTROL_BIT),
        changed(length=48),
        changed(length=-1),
        changed(length=2**31 - 1),
        changed(magic=1),
        changed(magic=-1),
    ],
)
def test_whatever_is_not_just_so_is_left_to_others(batch: bytes) -> None:
    rows, at, _, next_offset, _ = walked(numbered(1) + batch)
    assert len(rows) == 1
    assert at == len(numbered(1))
    assert next_offset == 1


def test_it_stops_where_there_is_no_room_and_no_more_is_allowed() -> None:
    log = b"".join(numbered(10, at=at, size=2) for at in range(0, 50, 10))
    one = len(numbered(10, size=2)) - HEADER.size
    rows, at, *_ = walked(log, room=2)
    assert [row[BASE_OFFSET] for row in rows] == [0, 10]
    rows, again, left, *_ = walked(log, left=2 * one + one // 2)
    assert (len(rows), again) == (2, at)
    assert left == one // 2


def test_batches_outside_the_span_are_passed_over_and_its_end_ends_the_walk() -> None:
    log = b"".join(numbered(10, at=at, size=2) for at in range(0, 50, 10))
    low, high = -(2**63), 2**63 - 1
    rows, at, *_ = walked(log, Span(15, 30, low, high))
    assert [row[BASE_OFFSET] for row in rows] == [10, 20]
    assert at == 3 * len(log) // 5
    rows, *_ = walked(log, Span(0, high, 1025, high))
    assert [row[BASE_OFFSET] for row in rows] == [20, 30, 40]
    stamped = build([NewRecord(None, None, timestamp=1)], timestamp_type=1, max_timestamp=9)
    rows, *_ = walked(stamped, Span(0, high, low, 5))
    assert rows == []
