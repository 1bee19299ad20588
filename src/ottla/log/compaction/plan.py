"""Which log to compact next, and how far: the plan, without any of the work.

Owns: the split of a log into clean, dirty and not yet cleanable; the choice of the dirtiest log;
which neighbouring segments become one.
Never: reads a record or a file, looks at a clock. `cleaner` carries the plan out.

A log has been compacted up to its checkpoint. From there to the first segment that holds
something unsettled (the active segment, the last stable offset, a record younger than the
minimum lag) it is dirty: that part is read for its newest keys, and everything before its end is
rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from ottla.model.clock import WallMs
from ottla.model.ids import Offset, TopicPartition

MAX_OFFSETS_PER_SEGMENT: Final = 0x7FFF_FFFF


class SegmentRange(NamedTuple):
    """What the plan needs to know of one segment."""

    base_offset: Offset
    size: int
    largest_timestamp: int
    first_timestamp: int  # of its first batch; 0 or less when it has none


class CleanableRange(NamedTuple):
    """One log, as compaction sees it. The last piece is the active segment."""

    start_offset: Offset
    last_stable_offset: Offset
    end_offset: Offset
    pieces: Sequence[SegmentRange]


class Lags(NamedTuple):
    """The topic's compaction settings: minimum lag, maximum lag, dirty ratio."""

    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float


class DirtyLog(NamedTuple):
    """How a log stands: clean below `first_dirty`, cleanable below `end`."""

    first_dirty: Offset
    end: Offset
    clean_bytes: int
    dirty_bytes: int
    overdue: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def wants_cleaning(self, min_ratio: float) -> bool:
        """Dirty enough, or something in it has waited for longer than it may."""
        return self.dirty_bytes > 0 and (self.overdue or self.ratio >= min_ratio)


def first_dirty_offset(log: CleanableRange, checkpoint: Offset | None) -> Offset:
    """Where the dirty part begins; a checkpoint outside the log is ignored."""
    if checkpoint is None or not log.start_offset <= checkpoint <= log.end_offset:
        return log.start_offset
    return checkpoint


def dirty_log_of(
    log: CleanableRange, checkpoint: Offset | None, lags: Lags, now_ms: WallMs
) -> DirtyLog:
    """The log's clean and dirty parts, in whole segments."""
    first_dirty = first_dirty_offset(log, checkpoint)
    ends = [piece.base_offset for piece in log.pieces[1:]] + [log.end_offset]
    dirty = [piece for piece, end in zip(log.pieces[:-1], ends, strict=False) if end > first_dirty]
    unsettled = min(log.last_stable_offset, log.pieces[-1].base_offset)
    if lags.min_compaction_lag_ms > 0:
        rested = now_ms - lags.min_compaction_lag_ms
        young = (piece.base_offset for piece in dirty if piece.largest_timestamp > rested)
        unsettled = min(unsettled, next(young, unsettled))
    # Segments are rewritten whole, so the one that holds the first unsettled offset stays.
    end = max(
        (piece.base_offset for piece in log.pieces if piece.base_offset <= unsettled),
        default=log.pieces[0].base_offset,
    )
    cleanable = [piece for piece in dirty if piece.base_offset < end]
    stamps = [piece.first_timestamp for piece in dirty if piece.first_timestamp > 0]
    return DirtyLog(
        first_dirty,
        max(first_dirty, end),
        sum(p.size for p in log.pieces if p.base_offset < end) - sum(p.size for p in cleanable),
        sum(piece.size for piece in cleanable),
        overdue=min(stamps, default=now_ms) < now_ms - max(lags.max_compaction_lag_ms, 0),
    )


def dirtiest_log(logs: Mapping[TopicPartition, tuple[DirtyLog, Lags]]) -> TopicPartition | None:
    """The log with the largest share of dirt among those that want cleaning."""
    wanting = {
        partition: dirt.ratio
        for partition, (dirt, lags) in logs.items()
        if dirt.wants_cleaning(lags.min_cleanable_dirty_ratio)
    }
    return max(sorted(wanting), key=wanting.__getitem__, default=None)


class Sized(Protocol):
    """A segment, by what bounds a merger."""

    @property
    def base_offset(self) -> Offset: ...

    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=Sized)


def group_segments(segments: Iterable[S], end: Offset, max_bytes: int) -> list[list[S]]:
    """Neighbours that fit together into one segment: by size, and by offsets from its base."""
    todo = list(segments)
    ends = [segment.base_offset for segment in todo[1:]] + [end]
    groups: list[list[S]] = []
    size = 0
    for segment, segment_end in zip(todo, ends, strict=False):
        fits = (
            bool(groups)
            and size + segment.size <= max_bytes
            and segment_end - 1 - groups[-1][0].base_offset <= MAX_OFFSETS_PER_SEGMENT
        )
        if fits:
            groups[-1].append(segment)
            size += segment.size
        else:
            groups.append([segment])
            size = segment.size
    return groups
