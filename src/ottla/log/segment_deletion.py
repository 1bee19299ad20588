"""Removing segments from a log: by retention, or because compaction has rewritten them.

Owns the suffixes of their files and which deletions are pending. Never decides which segments are
removed: `retention` and the cleaner do.

A removed segment is renamed `.deleted` and removed after `file.delete.delay.ms`. Replacing old
segments by a new one is safe at every step, because loading finishes or undoes it:

1. the new one is complete and durable, named `.cleaned`: a crash drops it;
2. it is renamed `.swap`, the `.log` last: while one `.cleaned` file is left, a crash drops all;
3. from then on a restart completes the swap: the old ones are deleted, the new one is renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.log.files import OutOfResources
from ottla.log.producers.snapshot_loading import snapshot_path
from ottla.log.retention import Candidate, RetentionBounds, RetentionLimits, expired_count
from ottla.log.segment.segment import Segment
from ottla.model.clock import WallMs
from ottla.model.ids import Offset

if TYPE_CHECKING:
    from ottla.log.log import Log

DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"


class SegmentToDelete(NamedTuple):
    """A segment renamed `.deleted`, and when its files may be removed."""

    due_ms: WallMs
    segment: Segment


class DeletedSegments:
    """Segments renamed `.deleted` whose files have not been removed yet."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: tuple[SegmentToDelete, ...] = ()

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[Segment]:
        return (pending.segment for pending in self._pending)

    def add(self, segment: Segment, due_ms: WallMs) -> None:
        """Rename a segment's files; they are removed once it is `due_ms`."""
        segment.rename(DELETED)
        self._pending = (*self._pending, SegmentToDelete(due_ms, segment))

    def purge(self, now_ms: WallMs) -> int:
        """Remove the files of segments whose delay is over; how many segments."""
        due = [pending for pending in self._pending if pending.due_ms <= now_ms]
        for pending in due:
            pending.segment.delete()
        self._pending = tuple(pending for pending in self._pending if pending not in due)
        return len(due)


def delete_old_segments(log: Log, now_ms: WallMs) -> int:
    """Apply the topic's retention; how many segments were removed."""
    config = log.config
    candidates = [
        Candidate(segment.base_offset, segment.size, segment.retention_timestamp)
        for segment in log.segments
    ]
    limits = RetentionLimits(
        config.retention_ms, config.retention_bytes, "delete" in config.cleanup_policy
    )
    bounds = RetentionBounds(log.start_offset, log.high_watermark, log.end_offset)
    count = expired_count(candidates, bounds, limits, now_ms)
    if count == len(candidates):
        log.roll(now_ms)
    for segment in log.segments[:count]:
        log.segments.remove(segment)
        log.deleted_segments.add(segment, WallMs(now_ms + config.file_delete_delay_ms))
        log.disk.remove(snapshot_path(log.dir, segment.base_offset))
    if count:
        log.raise_start_offset(log.segments.first.base_offset)
        log.directory.changed()
    return count


def replace_segments(
    log: Log, new: Segment, old: Sequence[Segment], now_ms: WallMs, read_to: Offset | None = None
) -> None:
    """Put a `.cleaned` segment, complete and synced, in the place of old ones.

    `read_to` is the end of what was read to decide which records are removed; the log's end if not
    given.
    """
    assert log.segments.active not in old, "the active segment is never replaced"
    if log.recovery_point < (log.end_offset if read_to is None else read_to):
        # The newer records of removed keys, and the markers that committed them, must be durable
        # first. And above the recovery point a gap would be taken for a lost tail.
        log.flush()
    log.disk.sync_dir(log.dir)
    cleaned = new.files.suffix
    new.rename(SWAP)
    try:
        log.disk.sync_dir(log.dir)
    except OutOfResources:
        new.rename(cleaned)  # or a later start would put it in place
        raise
    for segment in old:
        log.deleted_segments.add(segment, WallMs(now_ms + log.config.file_delete_delay_ms))
    new.rename("")
    log.segments.replace(old, new)
    log.disk.sync_dir(log.dir)
