"""From one segment to the next: closing the active one, beginning another.

Owns what must be complete on disk when a segment is closed. `rolling` decides when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.log.producers import snapshot_file
from ottla.log.producers.snapshot_loading import snapshot_path
from ottla.log.segment.segment import INDEX, TIME_INDEX, TXN_INDEX, Segment
from ottla.log.timestamp_lookup import find_lost
from ottla.model.ids import Offset

if TYPE_CHECKING:
    from ottla.log.log import Log
from typing import TYPE_CHECKING, Final

from ottla.log.index.sparse_index import TimeIndex
from ottla.log.segment.segment import MAX_RELATIVE_OFFSET, SegmentPosition

if TYPE_CHECKING:
    from random import Random

    from ottla.config.topic import TopicConfig


LARGEST_ENTRY: Final = TimeIndex.ENTRY.size


def must_roll(segment: Segment, config: TopicConfig, batch: SegmentPosition, now_ms: int) -> bool:
    """Whether a batch needs a new segment. Hot: benchmarks/log.py."""
    size = segment.size
    if batch.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if not size:
        return False
    return (
        size + batch.size > config.segment_bytes
        or waited_ms(segment, batch.max_timestamp, now_ms) > config.segment_ms - segment.jitter_ms
        or segment.index_bytes + LARGEST_ENTRY > config.segment_index_bytes
    )


def waited_ms(segment: Segment, newest: int, now_ms: int) -> int:
    """How long a segment has been filling: by its records' own time, where they have one."""
    first = segment.first_timestamp
    return newest - first if first >= 0 else now_ms - segment.created_ms


def jitter_ms(config: TopicConfig, dice: Random) -> int:
    """Taken off a segment's age limit, so that partitions created together do not roll together."""
    most = min(config.segment_jitter_ms, config.segment_ms)
    return dice.randrange(most) if most > 0 else 0


def roll(log: Log, now_ms: int, base_offset: Offset | None = None) -> bool:
    """Close the active segment and begin another at the log's end, unless it is empty."""
    base = log.end_offset if base_offset is None else base_offset
    active = log.segments.active
    if active.size == 0:
        if active.base_offset == base:
            return False
        log.segments.remove(active)
        active.delete()
    else:
        active.finish()
        _vouch_for_aborted(log, active)
        active.release()
        log.folder.sync_later(*(active.path(kind) for kind in (INDEX, TIME_INDEX, TXN_INDEX)))
        write_snapshot(log, base)
    add_segment(log, base, now_ms)
    return True


def maybe_roll(log: Log, now_ms: int) -> bool:
    """Close an active segment that is too old, though nothing is being appended."""
    active = log.segments.active
    if not active.size:
        return False
    waited = waited_ms(active, now_ms, now_ms)
    return waited > log.config.segment_ms - active.jitter_ms and roll(log, now_ms)


def add_segment(log: Log, base_offset: Offset, created_ms: int) -> None:
    """Begin an empty segment, the new active one."""
    segment = Segment(log.disk, log.dir, base_offset)
    segment.created_ms = created_ms
    segment.aborted = []
    segment.jitter_ms = jitter_ms(log.config, log.dice)
    segment.file()  # there on disk from now on: its name remembers where the log ends
    log.segments.add(segment)
    log.folder.changed()


def _vouch_for_aborted(log: Log, segment: Segment) -> None:
    """Let a missing index of aborted transactions be told from one that was never needed.

    Unless it was read or written in this life, it may be one that was lost: then it is rebuilt.
    """
    path = segment.path(TXN_INDEX)
    if log.disk.exists(path) or all(state.coordinator_epoch < 0 for state in log.producers):
        return
    if segment.aborted is None:
        find_lost(log, segment)
    else:
        log.disk.open_append(path).close()


def write_snapshot(log: Log, offset: Offset) -> None:
    """Producer state as it is now, for the batches below `offset`."""
    if offset > log.snapshot_offset:
        content = snapshot_file.encode(log.producers.entries())
        log.folder.write(snapshot_path(log.dir, offset).name, content)
        log.snapshot_offset = offset


def close(log: Log) -> None:
    """A clean stop: everything derived is complete on disk, and nothing needs recovery."""
    active = log.segments.active
    if log.recovery_point < log.end_offset or log.snapshot_offset < log.end_offset:
        if active.size:
            active.finish()
            _vouch_for_aborted(log, active)
            log.folder.sync_later(*(active.path(kind) for kind in (INDEX, TIME_INDEX, TXN_INDEX)))
        write_snapshot(log, log.end_offset)
    log.flush()
    for segment in log.segments:
        segment.release()
