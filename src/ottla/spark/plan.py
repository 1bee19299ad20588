"""How much the next batch reads, and how it is cut into tasks.

Pure. Owns: the spans of offsets that tasks read, the options that cut them (`minPartitions`,
`maxRecordsPerPartition`) or put them together (`minRecordsPerPartition`), and those that hold a
batch back (`maxOffsetsPerTrigger`, `minOffsetsPerTrigger` with `maxTriggerDelay`,
`maxBytesPerTrigger`).
Never: asks a broker or a clock.

Offsets stand for records: after compaction, and where transactions leave their markers, a span
holds fewer records than it is long. Every limit here is therefore one of offsets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ottla.model.ids import Offset, TopicPartition
from ottla.spark.offsets import Offsets


class Span(NamedTuple):
    """Part of one partition: what one task reads."""

    partition: TopicPartition
    start: Offset
    end: Offset

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Cut:
    """How spans become tasks."""

    min_partitions: int | None = None
    max_records: int | None = None
    together: int = 1_000
    """A stream's task reads several spans rather than fewer offsets than this: to start one takes
    longer than to read so many."""


@dataclass(frozen=True)
class Limits:
    """How much a batch may read, and how much it must find."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 15 * 60_000
    max_bytes: int | None = None


def spans(start: Mapping[TopicPartition, Offset], end: Offsets) -> list[Span]:
    """One span for each partition that has something to read."""
    found = (Span(tp, start[tp], end[tp]) for tp in sorted(end) if tp in start)
    return [span for span in found if span.size > 0]


def cut(whole: Sequence[Span], how: Cut) -> list[Span]:
    """Spans small enough, and enough of them; about `min_partitions`, as sizes round."""
    pieces = list(whole)
    if how.max_records is not None:
        longest = how.max_records
        pieces = [part for span in pieces for part in _parts(span, -(-span.size // longest))]
    if how.min_partitions is None or len(pieces) >= how.min_partitions:
        return pieces
    return _shared_out(pieces, how.min_partitions)


def gather(pieces: Sequence[Span], how: Cut) -> list[tuple[Span, ...]]:
    """The spans of each task: small neighbours together, unless another option says how many."""
    total = sum(span.size for span in pieces)
    count = max(total // how.together, 1)
    is_settled = how.min_partitions is not None or how.max_records is not None
    if is_settled or count >= len(pieces):
        return [(span,) for span in pieces]
    tasks: list[list[Span]] = [[] for _ in range(count)]
    before = 0
    for span in pieces:
        tasks[before * count // total].append(span)
        before += span.size
    return [tuple(task) for task in tasks if task]


def limit_offsets(start: Offsets, end: Offsets, limit: int) -> Offsets:
    """An earlier end, `limit` offsets from the start, shared out by how much each one has.

    A partition with little to read still advances: a share below one offset is one offset.
    """
    sizes = {tp: end[tp] - start[tp] for tp in end if tp in start and end[tp] > start[tp]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    return {
        tp: end[tp] if tp not in sizes else _share(start[tp], sizes[tp], total, limit) for tp in end
    }


def fewer_bytes(
    start: Offsets, end: Offsets, max_bytes: int, bytes_each: Mapping[TopicPartition, float]
) -> Offsets:
    """An earlier end, about `max_bytes` from the start, given what a record weighs on average.

    Each partition gives way by the same fraction. At least one offset of each is read, however
    heavy: a batch must get on.
    """
    sizes = {tp: end[tp] - start[tp] for tp in end if tp in start and end[tp] > start[tp]}
    weight = sum(size * bytes_each.get(tp, 0.0) for tp, size in sizes.items())
    if weight <= max_bytes:
        return dict(end)
    kept = max_bytes / weight
    return {
        tp: end[tp] if tp not in sizes else start[tp] + max(1, math.floor(sizes[tp] * kept))
        for tp in end
    }


def waits(start: Offsets, end: Offsets, limits: Limits, waited_ms: int | None) -> bool:
    """Whether too little has come for a batch; `waited_ms` since the last one, None if none was."""
    if limits.min_offsets is None or waited_ms is None or waited_ms >= limits.max_delay_ms:
        return False
    return sum(end[tp] - start.get(tp, 0) for tp in end) < limits.min_offsets


def _share(start: Offset, size: int, total: int, limit: int) -> Offset:
    share = limit * size / total
    return start + min(size, math.ceil(share) if share < 1 else math.floor(share))


def _shared_out(pieces: Sequence[Span], count: int) -> list[Span]:
    """Cut the larger ones; what is too small to be cut leaves its share to them."""
    total = sum(span.size for span in pieces)
    large = {span for span in pieces if _count(span.size, total, count) > 1}
    large_total = sum(span.size for span in large)
    rest = max(count - (len(pieces) - len(large)), 1)
    return [
        part
        for span in pieces
        for part in _parts(span, _count(span.size, large_total, rest) if span in large else 1)
    ]


def _count(size: int, total: int, wanted: int) -> int:
    return max(math.floor(size / total * wanted + 0.5), 1)


def _parts(span: Span, count: int) -> Iterable[Span]:
    """`count` pieces that differ by one offset at most; no empty ones."""
    count = min(count, span.size)
    bounds = [span.start + span.size * index // count for index in range(count + 1)]
    return [Span(span.partition, *pair) for pair in pairwise(bounds)]
