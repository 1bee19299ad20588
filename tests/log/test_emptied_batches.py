"""Where compaction leaves a batch without records, and that the indexes fit what is left."""

from __future__ import annotations

from random import Random

from ottla.log.dump.dump import dump
from ottla.log.dump.rows import DumpError, DumpOptions
from ottla.log.recovery.log_loader import CheckpointedState, LogLocation, load
from ottla.log.stored_batch import StoredBatch, walk_whole
from ottla.model.clock import WallMs
from ottla.protocol.records.control import ControlType
from ottla.protocol.records.record import read_records
from tests.log.compacted_log import FOLDER, HOUR, Compacted, files, in_memory


def empty_batches(compacted: Compacted) -> list[int]:
    return [batch.base_offset for batch, _ in compacted.batches() if not read_count(batch)]


def read_count(batch: StoredBatch) -> int:
    assert batch.header is not None
    return batch.header.count


def overtaken() -> Compacted:
    """Four closed segments, each too large to be merged; of two nothing is newest."""
    compacted = Compacted(FOLDER, in_memory(), internal_segment_bytes="300")
    for value in (b"1" * 200, b"2" * 200, b"3" * 200):
        compacted.put((b"a", value))
        compacted.roll()
        compacted.epoch = 1  # whose first record is overtaken too
    compacted.put((b"b", b"1" * 200))
    compacted.roll()
    compacted.put((b"active", b""))
    return compacted


def test_no_batch_without_records_is_left_where_others_follow() -> None:
    compacted = overtaken()
    compacted.clean()
    assert len(compacted.log.segments) == 5, "each was a group of its own"
    assert [segment.size for segment in compacted.log.segments][:2] == [0, 0]
    assert empty_batches(compacted) == []
    assert [record.offset for record in compacted.records()] == [2, 3, 4]
    end = compacted.log.end_offset
    found = compacted.log.read(0, 1 << 20, end=end, min_one=True).slice
    assert found is not None, "the first read finds the first record"
    assert [record.offset for record in read_records(found.read())] == [2]


def test_a_log_with_emptied_segments_is_loaded_as_it_was() -> None:
    compacted = overtaken()
    log = compacted.log
    compacted.clean()
    log.flush()
    epochs, place = log.epochs.entries, LogLocation(log.disk, Random(1), compacted.now_ms)
    for point in (log.end_offset, 4, 3, 2):
        known = CheckpointedState(clean=False, recovery_point=point)
        again = load(log.partition, FOLDER, log.config, place, known)
        assert (again.start_offset, again.end_offset) == (log.start_offset, log.end_offset)
        assert again.epochs.entries == epochs
        contents = (
            content
            for segment in again.segments
            for _, content in walk_whole(segment.file(), 0, segment.size)
        )
        stored = [record.offset for content in contents for record in read_records(content)]
        assert stored == [2, 3, 4]


def test_the_last_batch_that_may_be_compacted_stays_until_others_follow_it() -> None:
    compacted = Compacted(FOLDER, in_memory())
    compacted.put((b"a", b"1"))
    compacted.put((b"a", None))
    compacted.roll()
    compacted.clean()
    compacted.now_ms = WallMs(compacted.now_ms + 2 * HOUR)
    compacted.clean()
    assert empty_batches(compacted) == [1], "nothing else says how far the log reaches"
    compacted.put((b"b", b"1"))
    compacted.roll()
    compacted.clean()
    assert empty_batches(compacted) == []
    assert [record.offset for record in compacted.records()] == [2]


def test_the_mark_at_the_end_of_a_copy_goes_with_its_index_entries() -> None:
    compacted = Compacted(
        FOLDER, in_memory(), internal_segment_bytes="400", index_interval_bytes="0"
    )
    for number in range(40):
        compacted.put((b"k%d" % (number % 9), b"%d" % number * 20))
        if number % 5 == 4:
            compacted.roll()
    compacted.clean()
    assert empty_batches(compacted) == []
    assert faults(compacted) == []


def test_the_indexes_of_a_compacted_log_fit_it() -> None:
    compacted = Compacted(FOLDER, in_memory())
    compacted.log.config = compacted.log.config.changed(index_interval_bytes=0)
    for n in range(60):
        compacted.now_ms = WallMs(compacted.now_ms + 1)
        value = None if n % 7 == 0 else b"%d" % n
        compacted.put((b"k%d" % (n % 9), value), producer=n % 3 - 1)
        if n % 10 == 9:
            for producer in (0, 1):
                compacted.end(producer, ControlType(n % 20 == 9))
            compacted.roll()
    compacted.clean()
    assert faults(compacted) == []


def faults(compacted: Compacted) -> list[DumpError]:
    """What the dump finds wrong with the files."""
    return [
        item
        for name in files(compacted, ".log", ".index", ".timeindex", ".txnindex")
        for item in dump(FOLDER / name, compacted.log.disk, DumpOptions(deep_iteration=True))
        if isinstance(item, DumpError) and item.is_fault
    ]
