"""Which of a log's oldest segments retention deletes.

Owns: the three rules (start offset, size, time) and what protects a segment from them.
Never: touches a file, reads a clock, removes anything. `segment_deletion` acts on the
answer, and rolls first when even the active segment is due, because a log always has one.

Segments are removed whole, the oldest first, so the answer is a number: how many to remove.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ottla.model.clock import WallMs
from ottla.model.ids import Offset


class Candidate(NamedTuple):
    """What the rules need to know of one segment."""

    base_offset: Offset
    size: int
    largest_timestamp: int


class RetentionBounds(NamedTuple):
    """Where the log starts, how far it is replicated, where it ends."""

    start_offset: Offset
    high_watermark: Offset
    end_offset: Offset


class RetentionLimits(NamedTuple):
    """The topic's limits; a negative one is no limit.

    `deletes` is whether the cleanup policy includes delete. Without it age and size do not matter,
    but segments below the start offset are still removed.
    """

    retention_ms: int
    retention_bytes: int
    deletes: bool


def expired_count(
    segments: Sequence[Candidate], bounds: RetentionBounds, limits: RetentionLimits, now_ms: WallMs
) -> int:
    """How many of the oldest segments are due. All of them means: roll, then remove them."""
    ends = [later.base_offset for _, later in pairwise(segments)] + [bounds.end_offset]
    removable = _removable(segments, ends, bounds.high_watermark)
    due = _leading(removable, lambda i: ends[i] <= bounds.start_offset and i + 1 < len(segments))
    if not limits.deletes:
        return due
    due = max(due, _over_size(segments, due, removable, limits.retention_bytes))
    if limits.retention_ms < 0:
        return due
    oldest_ms = now_ms - limits.retention_ms
    return due + _leading(
        removable - due, lambda i: segments[due + i].largest_timestamp < oldest_ms
    )


def _removable(segments: Sequence[Candidate], ends: Sequence[Offset], watermark: Offset) -> int:
    """Only what lies wholly below the high watermark, and never an empty active segment."""
    below = _leading(len(segments), lambda i: ends[i] <= watermark)
    all_of_it = below == len(segments)
    return below - 1 if all_of_it and segments and segments[-1].size == 0 else below


def _over_size(segments: Sequence[Candidate], due: int, removable: int, limit: int) -> int:
    """Oldest first, as long as what is over the limit covers a whole segment."""
    if limit < 0:
        return due
    excess = sum(segment.size for segment in segments[due:]) - limit
    while due < removable and excess - segments[due].size >= 0:
        excess -= segments[due].size
        due += 1
    return due


def _leading(count: int, holds: Callable[[int], bool]) -> int:
    return next((i for i in range(count) if not holds(i)), count)
