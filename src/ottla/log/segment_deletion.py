"""Segments that leave a log: by retention, or because compaction wrote better ones.

Owns the file names they pass through. Never decides which: `retention` and the cleaner do.

A segment that goes is renamed `.deleted` and removed after `file.delete.delay.ms`. Replacing old
segments by a new one is safe at every step, because loading finishes or undoes it:

1. the new one is complete and durable, named `.cleaned`: a crash drops it;
2. it is renamed `.swap`, the `.log` last: while one `.cleaned` file is left, a crash drops all;
3. from then on a crash completes the swap: the old ones go, the new one takes its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.log.producers.snapshot_loading import snapshot_path
from ottla.log.retention import Candidate, RetentionBounds, RetentionLimits, expired
from ottla.log.segment.rollover import roll
from ottla.log.segment.segment import Segment
from ottla.log.segment.segment_list import SegmentList
from ottla.model.ids import Offset

if TYPE_CHECKING:
    from ottla.log.log import Log

DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"


class SegmentToDelete(NamedTuple):
    """A segment renamed `.deleted`, and when its files may be removed."""

    due_ms: int
    segment: Segment


def delete_old(log: Log, now_ms: int) -> int:
    """Apply the topic's retention; how many segments went."""
    config = log.config
    candidates = [
        Candidate(segment.base_offset, segment.size, segment.largest_timestamp())
        for segment in log.segments
    ]
    limits = RetentionLimits(
        config.retention_ms, config.retention_bytes, "delete" in config.cleanup_policy
    )
    bounds = RetentionBounds(log.start_offset, log.high_watermark, log.end_offset)
    count = expired(candidates, bounds, limits, now_ms)
    if count == len(candidates):
        roll(log, now_ms)
    going = [log.segments[at] for at in range(count)]
    for segment in going:
        log.segments.remove(segment)
        _doom(log, segment, now_ms)
        log.disk.remove(snapshot_path(log.dir, segment.base_offset))
    if going:
        log.start_offset = max(log.start_offset, log.segments.first.base_offset)
        log.epochs.truncate_from_start(log.start_offset)
        log.folder.changed()
    return count


def replace(
    log: Log, new: Segment, old: Sequence[Segment], now_ms: int, rests_on: Offset | None = None
) -> None:
    """Put a `.cleaned` segment, complete and synced, in the place of old ones.

    `rests_on` is how much of the log was looked at to decide what goes; all of it if not said.
    """
    assert log.segments.active not in old, "the active segment is never replaced"
    if log.recovery_point < (log.end_offset if rests_on is None else rests_on):
        # What overtook the records that go, and the markers that made it count, must be as
        # durable as the loss. And above the recovery point a gap would be taken for a lost tail.
        log.flush()
    log.disk.sync_dir(log.dir)
    new.rename(SWAP)
    log.disk.sync_dir(log.dir)
    kept = [segment for segment in log.segments if segment not in old]
    for segment in old:
        _doom(log, segment, now_ms)
    new.rename("")
    log.segments = SegmentList([*kept, new])
    log.generation += 1
    log.disk.sync_dir(log.dir)


def purge(log: Log, now_ms: int) -> int:
    """Remove the files of segments whose delay is over; how many segments."""
    due = [doomed for doomed in log.doomed if doomed.due_ms <= now_ms]
    for doomed in due:
        doomed.segment.delete()
    log.doomed = tuple(doomed for doomed in log.doomed if doomed not in due)
    return len(due)


def _doom(log: Log, segment: Segment, now_ms: int) -> None:
    segment.rename(DELETED)
    log.doomed = (*log.doomed, SegmentToDelete(now_ms + log.config.file_delete_delay_ms, segment))
