"""Promises of the cleaner and of the replacement segments it writes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.compaction.cleaner import (
    CleanerMemory,
    CleaningAborted,
    Progress,
    SegmentSwap,
)
from ottla.log.producers.producer_states import ProducerStates
from ottla.log.producers.snapshot_loading import replay
from ottla.log.segment_deletion import delete_old_segments
from ottla.log.stored_batch import walk_whole
from ottla.model.clock import WallMs
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.record import Record
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.compacted_log import FOLDER, HOUR, Compacted, files, in_memory, latest


@pytest.fixture
def compacted() -> Compacted:
    return Compacted(FOLDER, in_memory())


@pytest.mark.spec("LOG-67", "LOG-70")
def test_each_key_keeps_its_newest_value_at_its_own_offset(compacted: Compacted) -> None:
    for n in range(3):
        compacted.put((b"a", b"a%d" % n), (b"b", b"b%d" % n))
        compacted.roll()
    compacted.put((b"c", b"c"))
    compacted.roll()
    compacted.clean()
    assert [(r.offset, r.key, r.value) for r in compacted.records()] == [
        (4, b"a", b"a2"),
        (5, b"b", b"b2"),
        (6, b"c", b"c"),
    ]


@pytest.mark.spec("LOG-68")
def test_the_active_segment_is_never_cleaned(compacted: Compacted) -> None:
    compacted.put((b"a", b"1"))
    compacted.roll()
    compacted.put((b"a", b"2"))
    compacted.put((b"a", b"3"))
    compacted.clean()
    assert [r.value for r in compacted.records()] == [b"1", b"2", b"3"]


@pytest.mark.spec("LOG-71")
def test_small_neighbours_are_merged_and_their_files_go_later(compacted: Compacted) -> None:
    for n in range(4):
        compacted.put((b"k%d" % n, b"v"))
        compacted.roll()
    compacted.clean()
    assert [segment.base_offset for segment in compacted.log.segments] == [0, 4]
    assert len(files(compacted, ".log.deleted")) == 4
    assert not files(compacted, ".cleaned", ".swap")
    compacted.log.deleted_segments.purge(WallMs(compacted.now_ms + 60_000))
    assert files(compacted, ".log", ".deleted") == [
        "00000000000000000000.log",
        "00000000000000000004.log",
    ]


def test_merging_stops_at_the_size_of_a_segment() -> None:
    compacted = Compacted(FOLDER, in_memory(), internal_segment_bytes="1000")
    for n in range(6):
        compacted.put((b"k%d" % n, b"v" * 400))
        compacted.roll()
    compacted.clean()
    assert [segment.base_offset for segment in compacted.log.segments] == [0, 2, 4, 6]


@pytest.mark.spec("LOG-72")
def test_a_tombstone_is_readable_for_its_time_and_then_gone(compacted: Compacted) -> None:
    compacted.put((b"a", b"1"))
    compacted.put((b"a", None))
    compacted.put((b"b", b"1"))
    compacted.roll()
    compacted.clean()
    assert [(r.key, r.value) for r in compacted.records()] == [(b"a", None), (b"b", b"1")]
    compacted.now_ms = WallMs(compacted.now_ms + HOUR)
    compacted.cleaned_to = None
    compacted.clean()
    assert [(r.key, r.value) for r in compacted.records()] == [(b"b", b"1")]


def test_a_second_round_with_nothing_new_changes_nothing(compacted: Compacted) -> None:
    for n in range(10):
        compacted.put((b"k%d" % (n % 3), b"%d" % n), codec=Codec(n % 5))
        compacted.roll()
    compacted.clean()
    before = [bytes(content) for _, content in compacted.batches()]
    compacted.cleaned_to = None
    compacted.clean()
    assert [bytes(content) for _, content in compacted.batches()] == before


@pytest.mark.spec("LOG-69")
def test_a_map_that_is_too_small_gets_the_log_clean_in_several_rounds(
    compacted: Compacted,
) -> None:
    for n in range(40):
        compacted.put((b"k%d" % (n % 20), b"%d" % n))
        compacted.roll()
    small = CleanerMemory(buffer_bytes=24 * 8)
    compacted.clean(small)
    assert compacted.cleaned_to is not None and 0 < compacted.cleaned_to < 40
    for _ in range(10):
        compacted.clean(small)
    assert compacted.cleaned_to == 40
    assert latest(compacted.records()) == {b"k%d" % (n % 20): b"%d" % n for n in range(20, 40)}


@pytest.mark.spec("LOG-74")
def test_nothing_of_an_open_transaction_is_touched(compacted: Compacted) -> None:
    compacted.put((b"a", b"old"))
    compacted.roll()
    compacted.put((b"a", b"open"), producer=1)
    compacted.roll()
    compacted.put((b"a", b"later"))
    compacted.roll()
    compacted.clean()
    assert [r.value for r in compacted.records()] == [b"old", b"open", b"later"]


@pytest.mark.spec("LOG-74")
def test_an_aborted_write_neither_stays_nor_removes_an_older_one(compacted: Compacted) -> None:
    compacted.put((b"a", b"good"))
    compacted.put((b"a", b"bad"), producer=1)
    compacted.end(1, ControlType.ABORT)
    compacted.put((b"b", b"1"), producer=1)
    compacted.end(1, ControlType.COMMIT)
    compacted.roll()
    compacted.clean()
    assert latest(compacted.committed()) == {b"a": b"good", b"b": b"1"}
    assert b"bad" not in [r.value for r in compacted.records()]


@pytest.mark.spec("LOG-74")
def test_markers_go_once_their_data_is_gone_and_their_time_is_over(compacted: Compacted) -> None:
    compacted.put((b"a", b"1"), producer=1)
    compacted.end(1, ControlType.COMMIT)
    compacted.put((b"a", b"2"))
    compacted.log.producers.expire(WallMs(compacted.now_ms + 100 * HOUR), HOUR)
    compacted.roll()

    def markers() -> int:
        headers = [batch.header for batch, _ in compacted.batches()]
        return sum(header is not None and header.is_control for header in headers)

    compacted.clean()
    assert markers() == 1  # its data went in this very round
    for _ in range(2):
        compacted.cleaned_to = None
        compacted.clean()
        assert markers() == 1
    compacted.now_ms = WallMs(compacted.now_ms + HOUR)
    compacted.cleaned_to = None
    compacted.clean()
    assert markers() == 0
    assert latest(compacted.committed()) == {b"a": b"2"}


@pytest.mark.spec("LOG-74")
def test_a_producer_goes_on_where_it_was_after_its_records_were_compacted_away(
    compacted: Compacted,
) -> None:
    compacted.put((b"a", b"1"), (b"a", b"2"), producer=1)
    compacted.end(1, ControlType.COMMIT)
    compacted.put((b"a", b"3"))
    compacted.roll()
    compacted.clean()
    headers = [batch.header for batch, _ in compacted.batches()]
    [kept] = [h for h in headers if h is not None and h.producer_id == 1 and not h.is_control]
    assert (kept.count, kept.last_sequence, kept.last_offset) == (0, 1, 1)


def test_work_comes_in_small_steps(compacted: Compacted) -> None:
    for n in range(200):
        compacted.put((b"k%d" % n, b"v" * 10_000))
    compacted.roll()
    steps = list(compacted.cleaning().steps())
    assert all(isinstance(step, Progress) for step in steps[:-1])
    assert len(steps) > 20
    assert all(step.bytes_read < 300_000 for step in steps if isinstance(step, Progress))


@pytest.mark.parametrize("change", ["truncated", "emptied", "aged out"])
def test_a_log_that_moved_on_meanwhile_is_left_as_it_is(compacted: Compacted, change: str) -> None:
    for n in range(4):
        compacted.put((b"k", b"%d" % n))
        compacted.roll()
    steps = compacted.cleaning().steps()
    swap = next(step for step in steps if isinstance(step, SegmentSwap))
    if change == "truncated":
        compacted.log.truncate_to(2)
    elif change == "emptied":
        compacted.log.truncate_fully_and_start_at(100)
    else:
        compacted.log.raise_start_offset(2)
        delete_old_segments(compacted.log, compacted.now_ms)
    before = [bytes(content) for _, content in compacted.batches()]
    with pytest.raises(CleaningAborted):
        swap.perform(compacted.now_ms)
    assert [bytes(content) for _, content in compacted.batches()] == before
    assert not files(compacted, ".cleaned")


operations = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.lists(
                st.tuples(
                    st.sampled_from([b"a", b"b", b"c", b"d"]), st.sampled_from([b"1", b"2", None])
                ),
                min_size=1,
                max_size=3,
            ),
            st.integers(-1, 2),
        ),
        st.tuples(st.just("end"), st.sampled_from(list(ControlType)), st.integers(0, 2)),
        st.tuples(st.just("roll")),
        st.tuples(st.just("clean"), st.integers(4, 12)),
        st.tuples(st.just("wait"), st.integers(1, HOUR)),
    ),
    min_size=12,
    max_size=50,
)


@pytest.mark.spec("LOG-67", "LOG-70", "LOG-72", "LOG-74")
@given(history=operations, segment_bytes=st.sampled_from(["150", "400", "1048576"]))
@settings(max_examples=300)
def test_no_history_of_writes_and_rounds_changes_what_readers_end_up_with(
    history: list[tuple[object, ...]], segment_bytes: str
) -> None:
    compacted = Compacted(FOLDER, in_memory(), internal_segment_bytes=segment_bytes)
    written: dict[int, Record] = {}
    open_: dict[int, list[int]] = {}  # offsets of each producer's open transaction
    aborted: set[int] = set()
    for operation in history:
        match operation:
            case ("put", list(records), int(producer)):
                first = compacted.log.end_offset
                compacted.put(*records, producer=producer)
                if producer >= 0:
                    mine = open_.setdefault(producer, [])
                    mine.extend(range(first, compacted.log.end_offset))
            case ("end", ControlType() as kind, int(choice)) if open_:
                producer = sorted(open_)[choice % len(open_)]
                compacted.end(producer, kind)
                offsets = open_.pop(producer)
                aborted.update(offsets if kind is ControlType.ABORT else ())
            case ("roll",):
                compacted.roll()
            case ("wait", int(pause)):
                compacted.now_ms = WallMs(compacted.now_ms + pause)
            case ("clean", int(slots)):
                compacted.roll()
                written |= {record.offset: record for record in compacted.records()}
                check_round(compacted, slots, written, aborted)


def check_round(
    compacted: Compacted, slots: int, written: dict[int, Record], aborted: set[int]
) -> None:
    before, end = latest(compacted.committed()), compacted.dirt().end
    producers = known_producers(compacted)
    beyond = [bytes(content) for batch, content in compacted.batches() if batch.base_offset >= end]
    compacted.clean(CleanerMemory(buffer_bytes=24 * slots))
    assert latest(compacted.committed()) == before
    left = compacted.records()
    assert all(written[record.offset] == record for record in left)
    ends = [batch.last_offset for batch, _ in compacted.batches()]
    assert ends == sorted(set(ends))
    check_emptied(compacted, end)
    after = [bytes(content) for batch, content in compacted.batches() if batch.base_offset >= end]
    assert after == beyond
    assert known_producers(compacted) == producers
    if compacted.cleaned_to == end:
        clean = [record for record in left if record.offset < end]
        assert not aborted & {record.offset for record in clean}
        assert len({record.key for record in clean}) == len(clean)


def check_emptied(compacted: Compacted, end: int) -> None:
    """A batch without records is a producer's last, or the last that could be compacted."""
    active = {entry.producer_id: entry for entry in compacted.log.producers.entries()}
    for batch, _ in compacted.batches():
        header = batch.header
        assert header is not None
        if not header.count and header.last_offset + 1 != end:
            assert header.is_control or header.last_offset == active[header.producer_id].last_offset


def known_producers(compacted: Compacted) -> dict[int, tuple[int, int, int]]:
    """What a restart without snapshots learns from the log: sequences and open transactions."""
    producers = ProducerStates()
    for batch, content in compacted.batches():
        replay(producers, batch, content)
    return {
        entry.producer_id: (entry.last_sequence, entry.last_offset, entry.txn_first_offset)
        for entry in producers.entries()
    }


@pytest.mark.parametrize("at", [1, 6, 7, 70, 75, 85, 90])
def test_rot_is_found_and_never_given_a_checksum_that_is_right(at: int) -> None:
    disk = ForgettingDisk()
    compacted = Compacted(FOLDER, disk)
    compacted.put((b"k", b"old"), (b"l", b"kept"))
    compacted.put((b"k", b"new"))
    compacted.roll()
    path = compacted.log.segments.first.files.path()
    content = bytearray(disk.read(path))
    content[at] ^= 1
    disk.replace(path, bytes(content))
    with pytest.raises(CorruptBatch):
        compacted.clean()
    assert disk.read(path) == content


def test_an_offset_that_belongs_to_the_next_segment_is_rot() -> None:
    compacted = Compacted(FOLDER, in_memory())
    compacted.put((b"k", b"old"))
    first = compacted.log.segments.first
    compacted.put((b"k", b"new"), (b"l", b"kept"))
    at = [batch.position for batch, _ in walk_whole(first.file(), 0, first.size)][1] + 7
    compacted.roll()
    content = bytearray(compacted.log.disk.read(first.files.path()))
    content[at] += 1  # no checksum covers it
    compacted.log.disk.replace(first.files.path(), bytes(content))
    with pytest.raises(CorruptBatch):
        compacted.clean()


@pytest.mark.spec("LOG-75")
def test_a_log_may_be_compacted_and_age_out_as_well() -> None:
    compacted = Compacted(
        FOLDER, in_memory(), cleanup_policy="compact,delete", retention_ms=str(2 * HOUR)
    )
    compacted.put((b"old", b"1"), (b"a", b"1"))
    compacted.roll()
    compacted.now_ms = WallMs(compacted.now_ms + HOUR)
    compacted.put((b"a", b"2"))
    compacted.roll()
    compacted.clean()
    assert latest(compacted.records()) == {b"old": b"1", b"a": b"2"}
    compacted.put((b"a", b"3"))
    compacted.roll()
    compacted.now_ms = WallMs(compacted.now_ms + 2 * HOUR + 1)
    assert delete_old_segments(compacted.log, compacted.now_ms) == 2
    assert compacted.log.start_offset == compacted.log.end_offset
    compacted.put((b"b", b"1"))
    compacted.roll()
    compacted.clean()  # the checkpoint lies before the log's start by now
    assert latest(compacted.records()) == {b"b": b"1"}
