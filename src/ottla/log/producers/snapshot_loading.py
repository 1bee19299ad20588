"""Producer state from a partition's directory: snapshots, and the batches after them.

Owns the `.snapshot` files and how state is derived again where one is missing or bad. Never
judges a batch. A snapshot is written whenever a segment is closed, at the next one's base offset,
and at a clean stop, at the log's end: state at any segment's start can be had without reading the
segments before it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from ottla.log.files import Disk
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.partition_directory import PartitionDirectory
from ottla.log.producers import snapshot_file
from ottla.log.producers.producer_states import CompletedTxn, Marker, ProducerStates
from ottla.log.producers.snapshot_file import SUFFIX, CorruptSnapshot
from ottla.log.segment.search import position_of
from ottla.log.segment.segment import Segment, file_name
from ottla.log.segment.segment_list import SegmentList
from ottla.log.stored_batch import StoredBatch
from ottla.model.ids import Offset
from ottla.protocol.records.batch import BatchHeader, CorruptBatch
from ottla.protocol.records.control import ControlType, decode_marker, usual_marker
from ottla.protocol.records.record import read_records

logger = logging.getLogger(__name__)


def snapshot_path(dir: Path, offset: Offset) -> Path:
    return dir / file_name(offset, SUFFIX)


def snapshot_offsets(names: Iterable[str]) -> list[Offset]:
    """The offsets of the snapshots among file names, in order."""
    stems = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdigit())


class SnapshotFiles:
    """The snapshots of one partition's directory, and the offset of the newest (-1: none)."""

    __slots__ = ("_directory", "newest")

    def __init__(self, directory: PartitionDirectory) -> None:
        self._directory = directory
        self.newest: Offset = -1

    def write(self, producers: ProducerStates, offset: Offset) -> None:
        """Save the state after all batches below `offset`, unless it is saved already."""
        if offset > self.newest:
            content = snapshot_file.encode(producers.entries())
            self._directory.write(file_name(offset, SUFFIX), content)
            self.newest = offset

    def remove_above(self, offset: Offset) -> None:
        """Remove those that may include batches at or above `offset`."""
        present = snapshot_offsets(self._directory.names())
        self._remove(snapshot for snapshot in present if snapshot > offset)
        self.newest = max((snapshot for snapshot in present if snapshot <= offset), default=-1)

    def remove_unneeded(self, needed: Iterable[Offset], end_offset: Offset) -> None:
        """Keep those at `needed` offsets and the newest that is not beyond the log's end."""
        present = snapshot_offsets(self._directory.names())
        self.newest = max((snapshot for snapshot in present if snapshot <= end_offset), default=-1)
        keep = {*needed, self.newest}
        self._remove(snapshot for snapshot in present if snapshot not in keep)

    def _remove(self, offsets: Iterable[Offset]) -> None:
        for offset in offsets:
            self._directory.disk.remove(snapshot_path(self._directory.path, offset))


def read_marker(content: bytes | memoryview) -> Marker | None:
    """How the control batch says a transaction ended; None for a control batch of another kind.

    An empty one is what compaction leaves of a transaction that is wholly gone.
    """
    marker = usual_marker(content)  # each transaction brings one: benchmarks/transactions.py
    if marker is None:
        record = next(iter(read_records(content)), None)
        marker = None if record is None else decode_marker(record.key, record.value)
    if marker is None:
        return None
    return Marker(marker.type is ControlType.COMMIT, marker.coordinator_epoch)


def replay(
    producers: ProducerStates, batch: StoredBatch, content: bytes | memoryview | None
) -> AbortedTxn | None:
    """Update the state with one stored batch; the aborted transaction it ended, if it did.

    `content` may be None for a batch that is no control batch.
    """
    header = batch.header
    if header is None or header.producer_id < 0:
        return None
    marker = None
    if header.is_control:
        assert content is not None
        marker = read_marker(content)
    return apply_batch(producers, header, marker, header.base_offset)


def apply_batch(
    producers: ProducerStates, header: BatchHeader, marker: Marker | None, first_offset: Offset
) -> AbortedTxn | None:
    """Update the state with a batch of a producer; the aborted transaction it ended, if it did."""
    if not header.is_control:
        producers.apply(header, first_offset)
        return None
    if marker is None:
        return None
    return _aborted_entry(producers, producers.apply_marker(header, marker, first_offset))


def _aborted_entry(producers: ProducerStates, completed: CompletedTxn | None) -> AbortedTxn | None:
    """The transaction index entry that a completed transaction leaves."""
    if completed is None or not completed.aborted:
        return None
    stable = producers.stable_offset_after(completed)
    return AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)


def replay_segment(
    producers: ProducerStates, segment: Segment, start: Offset, end: Offset
) -> list[AbortedTxn]:
    """Update the state with the batches of a segment within [start, end)."""
    aborted: list[AbortedTxn] = []
    if segment.size == 0:
        return aborted
    for batch in segment.headers(position_of(segment, start)):
        if batch.base_offset >= end:
            break
        header = batch.header
        content = None
        if header is not None and header.is_control:
            content = segment.file().slice(batch.position, batch.size).read()
        entry = replay(producers, batch, content)
        if entry is not None:
            aborted.append(entry)
    return aborted


def states_at(disk: Disk, dir: Path, segments: SegmentList, end: Offset) -> ProducerStates:
    """State just before `end`: the newest good snapshot not after it, and the batches since.

    A bad snapshot is removed; with none at all the whole log is replayed.
    """
    producers = ProducerStates()
    start = segments.first.base_offset
    for offset in reversed(snapshot_offsets(disk.list(dir))):
        if offset > end or offset < start:
            continue
        path = snapshot_path(dir, offset)
        try:
            producers.restore(snapshot_file.decode(disk.read(path)))
        except CorruptSnapshot as fault:
            logger.warning("%s: ignoring snapshot, reading the log instead: %s", path, fault)
            disk.remove(path)
            continue
        start = offset
        break
    if start < end:
        for segment in segments.starting_from(start):
            if segment.base_offset < end:
                _replay_all(producers, segment, start, end)
    return producers


def _replay_all(producers: ProducerStates, segment: Segment, start: Offset, end: Offset) -> None:
    try:
        replay_segment(producers, segment, start, end)
    except CorruptBatch as fault:
        # Recovery decides whether that is corruption or an unflushed tail.
        logger.warning(
            "%s: producer state ends at an invalid batch: %s", segment.files.path(), fault
        )
