"""Filters that Spark pushes down in batch queries, as bounds on what is read.

Pure but for pyspark's filter classes. Owns: which conditions on topic, partition, offset and
timestamp narrow a read. Never: drops a row itself: every filter is handed back to Spark, which
applies it to what is left, so a bound here may be loose and never wrong.

A condition on topic or partition leaves out whole partitions, one on offsets shortens spans, one
on timestamps skips batches unread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ottla.model.ids import TopicPartition
from ottla.spark.plan import Span
from ottla.spark.reader import FIRST_MS, LAST_MS, ReadRequest

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

FIRST: Final = -(2**63)
LAST: Final = 2**63 - 1
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FilterValue: TypeAlias = Any
"""Of the Python type of the column that a condition is about."""


@dataclass(frozen=True)
class Bounds:
    """What may be wanted; None where any may. Ranges are half-open."""

    topics: frozenset[str] | None = None
    partitions: tuple[int, int] = (FIRST, LAST)
    chosen: frozenset[int] | None = None
    offsets: tuple[int, int] = (FIRST, LAST)
    times_ms: tuple[int, int] = (FIRST_MS, LAST_MS)

    def restrict(self, span: Span) -> ReadRequest | None:
        """What is left of a span; None if nothing is."""
        if not self._covers(span.partition):
            return None
        start = max(span.start, self.offsets[0])
        end = min(span.end, self.offsets[1])
        if start >= end or self.times_ms[0] >= self.times_ms[1]:
            return None
        return ReadRequest(Span(span.partition, start, end), *self.times_ms)

    def _covers(self, tp: TopicPartition) -> bool:
        return (
            (self.topics is None or tp.topic in self.topics)
            and (self.chosen is None or tp.partition in self.chosen)
            and self.partitions[0] <= tp.partition < self.partitions[1]
        )


def bounds(filters: Iterable[Filter]) -> Bounds:
    """What all these conditions together leave."""
    current = Bounds()
    for condition in filters:
        current = _narrow(current, condition)
    return current


def _narrow(current: Bounds, condition: Filter) -> Bounds:
    from pyspark.sql import datasource as spark

    column: tuple[str, ...] = getattr(condition, "attribute", ())
    value = getattr(condition, "value", None)
    if len(column) != 1 or value is None:
        return current
    if isinstance(condition, spark.In):
        return _among(current, column[0], value)
    if isinstance(condition, spark.EqualTo | spark.EqualNullSafe):
        return _within(_among(current, column[0], (value,)), column[0], value, value)
    if isinstance(condition, spark.GreaterThan | spark.GreaterThanOrEqual):
        return _within(current, column[0], value, None)
    if isinstance(condition, spark.LessThan | spark.LessThanOrEqual):
        return _within(current, column[0], None, value)
    return current


def _among(current: Bounds, column: str, values: Iterable[FilterValue]) -> Bounds:
    listed = frozenset(values)
    if column == "topic":
        return replace(
            current, topics=listed if current.topics is None else current.topics & listed
        )
    if column == "partition":
        return replace(
            current, chosen=listed if current.chosen is None else current.chosen & listed
        )
    return current


def _within(current: Bounds, column: str, low: FilterValue, high: FilterValue) -> Bounds:
    """Narrow to what is neither below `low` nor above `high`; both may be met."""
    if column in ("offset", "partition"):
        if not all(bound is None or isinstance(bound, int) for bound in (low, high)):
            return current
        if column == "offset":
            return replace(current, offsets=_narrower(current.offsets, low, high))
        return replace(current, partitions=_narrower(current.partitions, low, high))
    if column == "timestamp":
        if not all(bound is None or isinstance(bound, datetime) for bound in (low, high)):
            return current
        times = (None if bound is None else _ms(bound) for bound in (low, high))
        return replace(current, times_ms=_narrower(current.times_ms, *times))
    return current


def _narrower(bounds: tuple[int, int], low: int | None, high: int | None) -> tuple[int, int]:
    start = bounds[0] if low is None else max(bounds[0], low)
    end = bounds[1] if high is None else min(bounds[1], high + 1)
    return start, end


def _ms(moment: datetime) -> int:
    """Milliseconds since 1970, rounded down; a time without a zone is one of this machine's."""
    aware = moment if moment.tzinfo is not None else moment.astimezone()
    return (aware - EPOCH) // timedelta(milliseconds=1)
