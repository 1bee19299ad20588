"""When the active segment is full. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.log.index.time_index import TimeIndex
from ottla.log.segment.segment import MAX_RELATIVE_OFFSET, Segment, SegmentPosition

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
