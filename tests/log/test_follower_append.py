"""Promises of `ottla.log.follower_append`."""

from __future__ import annotations

import pytest

from ottla.log.follower_append import append_as_follower
from ottla.log.log import Log
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from tests.log.workbench import NOW_MS, Workbench, add, stored, values


def at(base: int, *contents: bytes, epoch: int = 0, **fields: int) -> bytes:
    records = [NewRecord(b"k", content, timestamp=NOW_MS) for content in contents]
    return build(records, base_offset=base, leader_epoch=epoch, **fields)  # type: ignore[arg-type]


def follow(log: Log, content: bytes) -> None:
    append_as_follower(log, memoryview(content), NOW_MS)


@pytest.mark.spec("LOG-46", "LOG-47", "REC-17")
def test_offsets_and_epochs_stay_as_the_leader_set_them() -> None:
    log = Workbench().create()
    appended = append_as_follower(
        log,
        at(0, b"a", epoch=2) + at(1, b"b", b"c", epoch=2) + at(7, b"d", epoch=5),
        NOW_MS,
    )
    assert (appended.first_offset, appended.last_offset, appended.count) == (0, 7, 4)
    assert [record.offset for record in stored(log)] == [0, 1, 2, 7]
    assert log.epochs.entries == [(2, 0), (5, 7)]
    assert log.end_offset == 8
    assert log.high_watermark == 0


def test_a_replica_is_byte_for_byte_what_the_leader_has() -> None:
    leader = Workbench(segment_bytes=300).create()
    for number in range(9):
        add(leader, b"%d" % number, epoch=number // 4)
    content = b"".join(s.file().slice(0, s.size).read() for s in leader.segments)
    follower = Workbench(segment_bytes=400).create()
    for start in range(0, len(content), 170):  # fetched in pieces that end anywhere
        position = sum(s.size for s in follower.segments)
        follow(follower, content[position : position + 170 + start % 7])
    position = sum(s.size for s in follower.segments)
    follow(follower, content[position:])
    copied = b"".join(s.file().slice(0, s.size).read() for s in follower.segments)
    assert copied == content
    assert follower.epochs.entries == leader.epochs.entries


def test_a_batch_cut_short_is_left_for_next_time() -> None:
    log = Workbench().create()
    content = at(0, b"a") + at(1, b"b")
    follow(log, content[:-3])
    assert values(log) == [b"a"]
    follow(log, at(1, b"b"))
    assert values(log) == [b"a", b"b"]
    follow(log, b"")
    assert log.end_offset == 2


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (at(0, b"again"), ErrorCode.offset_out_of_range),
        (at(1, b"x") + at(1, b"y"), ErrorCode.offset_out_of_range),
        (at(1, b"x")[:-1] + b"?", ErrorCode.corrupt_message),
        (b"\0" * 70, ErrorCode.corrupt_message),
    ],
)
def test_nothing_of_a_bad_set_is_taken(content: bytes, code: ErrorCode) -> None:
    log = Workbench().create()
    follow(log, at(0, b"a"))
    with pytest.raises(KafkaError) as error:
        follow(log, content)
    assert error.value.code is code
    assert values(log) == [b"a"]


def test_a_set_larger_than_a_segment_is_spread_over_several() -> None:
    log = Workbench(segment_bytes=250).create()
    appended = append_as_follower(
        log, b"".join(at(number, b"%d" % number) for number in range(10)), NOW_MS
    )
    assert appended.rolled
    assert len(log.segments) > 3
    assert [record.offset for record in stored(log)] == list(range(10))
    assert all(segment.size <= 250 for segment in log.segments)


def test_offsets_far_apart_get_segments_of_their_own() -> None:
    log = Workbench().create()
    follow(log, at(0, b"a") + at(2**31 + 50, b"b"))
    assert [segment.base_offset for segment in log.segments] == [0, 2**31 + 50]
    log.segments.active.finish()
    assert [record.offset for record in stored(log)] == [0, 2**31 + 50]


def test_an_empty_log_may_begin_far_from_zero() -> None:
    log = Workbench().create()
    follow(log, at(2**40, b"a"))
    assert [segment.base_offset for segment in log.segments] == [2**40]
    assert log.end_offset == 2**40 + 1


@pytest.mark.spec("REC-01", "REC-40")
def test_old_formats_are_replicated_as_they_are() -> None:
    log = Workbench().create()
    old = legacy.build([NewRecord(b"k", b"v")], magic=0) + legacy.build(
        [NewRecord(b"k", b"v", timestamp=5)], magic=1, base_offset=1
    )
    follow(log, old)
    assert log.end_offset == 2
    assert log.epochs.entries == []
    part = log.read(0, 1_000, end=2, min_one=True).slice
    assert part is not None
    assert part.read() == old


def test_producers_are_known_on_followers_too() -> None:
    log = Workbench().create()
    follow(log, at(0, b"a", b"b", producer_id=9, producer_epoch=1, base_sequence=0))
    state = log.producers.get(9)
    assert state is not None
    assert state.last_sequence == 1
