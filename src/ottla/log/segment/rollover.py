"""From one segment to the next: when to roll, creating a segment, completing a closed one.

Owns the rules for rolling, and which files must be complete when a segment is closed. `Log.roll`
changes the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.log.aborted_transactions import ensure_index
from ottla.log.index.sparse_index import TimeIndex
from ottla.log.partition_directory import PartitionDirectory
from ottla.log.segment.segment import (
    INDEX,
    MAX_RELATIVE_OFFSET,
    TIME_INDEX,
    TXN_INDEX,
    Segment,
    SegmentPosition,
)
from ottla.model.clock import WallMs
from ottla.model.ids import Offset

if TYPE_CHECKING:
    from random import Random

    from ottla.config.topic import TopicConfig
    from ottla.log.log import Log


LARGEST_ENTRY: Final = TimeIndex.ENTRY.size


def must_roll(
    segment: Segment, config: TopicConfig, batch: SegmentPosition, now_ms: WallMs
) -> bool:
    """Whether a batch needs a new segment. Hot: benchmarks/log.py."""
    size = segment.size
    if batch.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if not size:
        return False
    return (
        size + batch.size > config.segment_bytes
        or age_ms(segment, batch.max_timestamp, now_ms) > config.segment_ms - segment.jitter_ms
        or segment.index_bytes + LARGEST_ENTRY > config.segment_index_bytes
    )


def age_ms(segment: Segment, newest: int, now_ms: WallMs) -> int:
    """The age of a segment: by its records' timestamps, where they have one."""
    first = segment.first_timestamp
    return newest - first if first >= 0 else now_ms - segment.created_ms


def jitter_ms(config: TopicConfig, random: Random) -> int:
    """Taken off a segment's age limit, so that partitions created together do not roll together."""
    most = min(config.segment_jitter_ms, config.segment_ms)
    return random.randrange(most) if most > 0 else 0


def create_segment(
    directory: PartitionDirectory, base_offset: Offset, created_ms: WallMs
) -> Segment:
    """An empty segment. Its file exists at once: its name records where the log ends."""
    segment = Segment(directory.disk, directory.path, base_offset)
    segment.created_ms = created_ms
    segment.aborted = []
    segment.file()
    directory.changed()
    return segment


def complete_indexes(log: Log, segment: Segment) -> None:
    """Write out all indexes of a segment that is closed; the next flush syncs them."""
    segment.finish()
    ensure_index(log, segment)
    paths = (segment.files.path(kind) for kind in (INDEX, TIME_INDEX, TXN_INDEX))
    log.directory.sync_later(*paths)
