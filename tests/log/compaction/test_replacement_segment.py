"""Promises of `ottla.log.compaction.replacement_segment`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.compaction.replacement_segment import ReplacementSegment
from ottla.log.index.txn_index import AbortedTxn, read
from ottla.log.segment.segment import TXN_INDEX, Segment
from ottla.log.stored_batch import walk_whole
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.compacted_log import FOLDER, Compacted

pytestmark = pytest.mark.spec("LOG-06", "LOG-71")

ABORTED = AbortedTxn(7, 1, 5, 6)


def batch(offset: int, *values: bytes) -> bytes:
    return build([NewRecord(b"k", value, (), 100 + offset) for value in values], base_offset=offset)


@pytest.fixture
def disk() -> ForgettingDisk:
    return ForgettingDisk()


@pytest.fixture
def replacement(disk: ForgettingDisk) -> ReplacementSegment:
    return ReplacementSegment(Compacted(FOLDER, disk, index_interval_bytes="0").log, 10)


def names(disk: ForgettingDisk) -> list[str]:
    return [name for name in disk.list(FOLDER) if name.startswith("00000000000000000010")]


def test_a_segment_in_the_making_is_named_as_what_a_crash_may_drop(
    disk: ForgettingDisk, replacement: ReplacementSegment
) -> None:
    replacement.add(batch(10, b"v"))
    assert replacement.write() > 0
    replacement.finish([])
    assert all(name.endswith(".cleaned") for name in names(disk))


def test_it_is_durable_when_it_is_finished(
    disk: ForgettingDisk, replacement: ReplacementSegment
) -> None:
    disk.sync_everything()
    batches = [batch(10, b"a"), batch(12, b"b", b"c")]
    for one in (*batches, b""):
        replacement.add(one)
    replacement.write()
    segment = replacement.finish([ABORTED])
    disk.crash(2)
    path = FOLDER / "00000000000000000010.log.cleaned"
    assert disk.read(path) == b"".join(batches)
    assert disk.read(path.with_name("00000000000000000010.index.cleaned")) != b""
    assert read(disk, segment.files.path(TXN_INDEX)) == [ABORTED]


def test_a_batch_without_records_has_no_time(replacement: ReplacementSegment) -> None:
    emptied = build([], base_offset=10, last_offset_delta=3, max_timestamp=999)
    replacement.add(emptied)
    replacement.add(batch(14, b"v"))
    replacement.write()
    assert replacement.finish([]).max_timestamp == 114


def test_what_an_earlier_try_left_is_not_kept(disk: ForgettingDisk) -> None:
    log = Compacted(FOLDER, disk).log
    for value in (b"first", b"second"):
        copy = ReplacementSegment(log, 10)
        copy.add(batch(10, value))
        copy.write()
        segment = copy.finish([])
    assert disk.read(segment.files.path()) == batch(10, b"second")


def test_more_batches_than_one_system_call_takes_are_written(tmp_path: Path) -> None:
    log = Compacted(tmp_path / "t-0").log
    copy = ReplacementSegment(log, 0)
    for offset in range(3_000):
        copy.add(batch(offset, b"v"))
    copy.write()
    segment: Segment = copy.finish([])
    assert sum(1 for _ in walk_whole(segment.file(), 0, segment.size)) == 3_000
