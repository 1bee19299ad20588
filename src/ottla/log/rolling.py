"""When the active segment is full. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.log.segment import Segment
from ottla.model.ids import Offset

if TYPE_CHECKING:
    from random import Random

    from ottla.config.topic import TopicConfig


class Incoming(NamedTuple):
    """What is about to be appended, as far as rolling cares."""

    size: int
    last_offset: Offset
    max_timestamp: int


def must_roll(segment: Segment, config: TopicConfig, incoming: Incoming, now_ms: int) -> bool:
    """Whether `incoming` needs a new segment. Hot: benchmarks/log.py."""
    size = segment.size
    if not segment.fits(incoming.last_offset):
        return True
    return size > 0 and (
        size + incoming.size > config.segment_bytes
        or waited_ms(segment, incoming.max_timestamp, now_ms)
        > config.segment_ms - segment.jitter_ms
        or segment.index_is_full(config.segment_index_bytes)
    )


def waited_ms(segment: Segment, newest: int, now_ms: int) -> int:
    """How long a segment has been filling: by its records' own time, where they have one."""
    first = segment.first_timestamp
    return newest - first if first >= 0 else now_ms - segment.created_ms


def jitter_ms(config: TopicConfig, dice: Random) -> int:
    """Taken off a segment's age limit, so that partitions created together do not roll together."""
    most = min(config.segment_jitter_ms, config.segment_ms)
    return dice.randrange(most) if most > 0 else 0
