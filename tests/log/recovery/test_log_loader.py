"""Promises of `ottla.log.recovery.log_loader`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.files import RealDisk
from ottla.log.log import CorruptLog, Log
from ottla.log.segment_deletion import delete_old_segments
from ottla.log.timestamp_lookup import max_timestamp_offset, offset_for_timestamp
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, TOPIC_ID, Workbench, add, values

DIGITS = [b"%d" % digit for digit in range(10)]


def ten(bench: Workbench) -> Log:
    log = bench.create()
    for number, digit in enumerate(DIGITS):
        if number in (4, 7):
            log.roll(NOW_MS)
        add(log, digit, epoch=number // 3, producer_id=1, producer_epoch=0, base_sequence=number)
    return log


@pytest.mark.spec("LOG-01", "LOG-02", "LOG-04")
def test_a_new_partition_is_a_folder_with_an_id_and_an_empty_segment() -> None:
    bench = Workbench()
    log = bench.create()
    assert bench.names() == ["00000000000000000000.log", "partition.metadata"]
    assert (log.start_offset, log.end_offset, log.topic_id) == (0, 0, TOPIC_ID)


def test_a_new_partition_is_there_after_its_first_flush() -> None:
    for seed in range(30):
        disk = ForgettingDisk()
        bench = Workbench(disk)
        bench.create().flush()
        disk.crash(seed)
        assert bench.load(clean=False).topic_id == TOPIC_ID


def test_an_empty_folder_is_an_empty_log() -> None:
    bench = Workbench()
    bench.disk.mkdir(bench.dir)
    for clean in (True, False):
        log = bench.load(clean=clean)
        assert (log.end_offset, log.topic_id) == (0, None)


@pytest.mark.spec("LOG-39")
def test_a_folder_that_lost_its_segments_begins_at_the_checkpointed_start() -> None:
    bench = Workbench()
    bench.disk.mkdir(bench.dir)
    assert bench.load(clean=False, start_offset=40).end_offset == 40


@pytest.mark.spec("LOG-20")
def test_a_clean_start_opens_no_file_for_longer_than_it_takes(tmp_path: Path) -> None:
    disk = RealDisk()
    bench = Workbench(disk, dir=tmp_path / "orders-3")
    ten(bench).close()
    again = bench.load(clean=True)
    assert len(disk.open_files) == 0
    assert values(again) == DIGITS


@pytest.mark.spec("LOG-37", "LOG-93")
@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("base", [0, 4, 7])
@pytest.mark.parametrize("damage", ["remove", "shorten", "empty"])
def test_a_missing_or_damaged_index_is_rebuilt(kind: str, base: int, damage: str) -> None:
    bench = Workbench(index_interval_bytes=0)
    ten(bench).close()
    path = bench.dir / f"{base:020d}.{kind}"
    whole = bench.disk.read(path)
    if damage == "remove":
        bench.disk.remove(path)
    else:
        bench.disk.replace(path, whole[:-1] if damage == "shorten" else b"")
    log = bench.load(clean=True)
    assert log.end_offset == 10
    for offset in range(10):
        read = log.read(offset, 1, end=10, min_one=True)
        assert read.slice is not None
        assert read.slice.read()[7] == offset
    assert max_timestamp_offset(log) == (NOW_MS, 0, 0)
    assert all(segment.max_timestamp == NOW_MS for segment in log.segments)
    log.close()
    if damage == "remove":
        assert bench.disk.read(path) == whole


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_segment_closed_after_the_last_flush_is_searched_for_later_times(kept: int) -> None:
    """Its data is durable; of its time index only some entries came to the disk."""
    bench = Workbench(index_interval_bytes=0)
    log = bench.create()
    for number in range(4):
        add(log, b"v", timestamp=NOW_MS + number)
    assert log.flush() == 4
    log.roll(NOW_MS)
    path = bench.dir / "00000000000000000000.timeindex"
    bench.disk.open_append(path).truncate(12 * kept)
    again = bench.load(clean=False, recovery_point=4)
    assert max_timestamp_offset(again) == (NOW_MS + 3, 3, 0)
    assert offset_for_timestamp(again, NOW_MS + 2) == (NOW_MS + 2, 2, 0)


@pytest.mark.spec("LOG-37")
def test_an_index_of_nothing_is_removed() -> None:
    bench = Workbench()
    ten(bench).close()
    for kind in ("index", "timeindex", "txnindex"):
        bench.disk.replace(bench.dir / f"00000000000000000099.{kind}", b"")
    bench.load(clean=True)
    assert not any(name.startswith("00000000000000000099") for name in bench.names())


def test_leader_epochs_that_no_batch_was_written_under_are_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Workbench()
    log = ten(bench)
    log.close()
    entries = log.epochs.entries
    text = "".join(f"{epoch} {start}\n" for epoch, start in [*entries[:-1], (9, 8)])
    content = f"0\n{len(entries)}\n{text}".encode()
    bench.disk.replace(bench.dir / "leader-epoch-checkpoint", content)
    assert bench.load(clean=True).epochs.entries == entries
    assert "does not match the log" in caplog.text


@pytest.mark.spec("LOG-16", "LOG-35")
@pytest.mark.parametrize("content", [None, b"", b"\0" * 9, b"0\n3\n0 0\n", b"0\n1\n5 9999999\n"])
@pytest.mark.parametrize("clean", [True, False])
def test_leader_epochs_come_from_the_batches_where_the_file_is_bad(
    content: bytes | None, clean: bool
) -> None:
    bench = Workbench()
    log = ten(bench)
    log.close()
    path = bench.dir / "leader-epoch-checkpoint"
    if content is None:
        bench.disk.remove(path)
    else:
        bench.disk.replace(path, content)
    again = bench.load(clean=clean, recovery_point=10)
    assert again.epochs.entries == log.epochs.entries
    again.close()
    assert bench.disk.read(path) == b"0\n4\n0 0\n1 3\n2 6\n3 9\n"


@pytest.mark.spec("LOG-92", "TXN-14")
@pytest.mark.parametrize("damage", ["flip", "remove", "remove all"])
def test_producers_are_known_without_their_last_snapshot(damage: str) -> None:
    bench = Workbench()
    ten(bench).close()
    names = [name for name in bench.names() if name.endswith(".snapshot")]
    assert names == [f"{offset:020d}.snapshot" for offset in (4, 7, 10)]
    match damage:
        case "flip":
            bench.flip(names[-1], 20)
        case "remove":
            bench.disk.remove(bench.dir / names[-1])
        case _:
            for name in names:
                bench.disk.remove(bench.dir / name)
    log = bench.load(clean=True)
    state = log.producers.get(1)
    assert state is not None
    assert state.last_sequence == 9
    add(log, b"next", producer_id=1, producer_epoch=0, base_sequence=10)


def test_only_snapshots_at_segment_starts_and_the_newest_are_kept() -> None:
    bench = Workbench()
    log = ten(bench)
    log.close()
    log = bench.load(clean=True)
    add(log, b"more")
    log.close()
    bench.disk.replace(bench.dir / "00000000000000000099.snapshot", b"beyond the end")
    bench.load(clean=True)
    kept = [name for name in bench.names() if name.endswith(".snapshot")]
    assert kept == [f"{offset:020d}.snapshot" for offset in (4, 7, 11)]


@pytest.mark.spec("LOG-13", "LOG-54", "LOG-94")
def test_the_log_starts_where_the_checkpoint_or_its_first_segment_says() -> None:
    bench = Workbench()
    ten(bench).close()
    log = bench.load(clean=True, start_offset=5)
    assert (log.start_offset, log.high_watermark) == (5, 5)
    assert log.epochs.entries[0] == (1, 5)
    log.raise_high_watermark(10)
    delete_old_segments(log, NOW_MS)
    log.close()
    assert bench.load(clean=True, start_offset=0).start_offset == 4


def test_a_start_beyond_the_end_begins_anew_there() -> None:
    bench = Workbench()
    ten(bench).close()
    log = bench.load(clean=True, start_offset=50)
    assert (log.start_offset, log.end_offset, log.size) == (50, 50, 0)


def test_files_kept_for_an_operator_are_not_read() -> None:
    bench = Workbench()
    ten(bench).close()
    for name in ("00000000000000000007.log.210.cut", "00000000000000000050.log.cut", "notes.txt"):
        bench.disk.replace(bench.dir / name, b"whatever")
    assert values(bench.load(clean=True)) == DIGITS
    assert "notes.txt" in bench.names()


@pytest.mark.parametrize(
    ("base", "batches", "index"), [(7, 3, True), (7, 3, False), (0, 4, False), (4, 3, False)]
)
def test_rot_that_a_clean_start_meets_takes_only_its_partition_offline(
    base: int, batches: int, index: bool
) -> None:
    """It meets the end of the last segment, and each one whose index it must rebuild."""
    bench = Workbench(index_interval_bytes=0)
    ten(bench).close()
    name = f"{base:020d}.log"
    size = len(bench.disk.read(bench.dir / name))
    bench.flip(name, size - size // batches + 16, bit=6)  # the magic of the last batch
    if not index:
        bench.disk.remove(bench.dir / f"{base:020d}.index")
    with pytest.raises(CorruptLog, match=name):
        bench.load(clean=True)
    assert name not in bench.names()
    assert f"{name}.quarantined" in bench.names()
    with pytest.raises(CorruptLog, match="earlier"):
        bench.load(clean=True)
