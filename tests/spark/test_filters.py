"""Conditions that Spark pushes down, as bounds on what is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql import datasource as spark

from ottla.model.ids import TopicPartition as TP
from ottla.spark.filters import bounds
from ottla.spark.plan import Span
from ottla.spark.reader import FIRST_MS, LAST_MS, ReadRequest

SPAN = Span(TP("a", 1), 10, 20)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp()) * 1000


def wanted(*filters: spark.Filter) -> ReadRequest | None:
    return bounds(filters).restrict(SPAN)


def test_without_conditions_everything_is_wanted() -> None:
    assert wanted() == ReadRequest(SPAN, FIRST_MS, LAST_MS)


@pytest.mark.parametrize(
    "condition",
    [
        spark.EqualTo(("topic",), "b"),
        spark.In(("topic",), ("b", "c")),
        spark.EqualTo(("partition",), 0),
        spark.In(("partition",), (0, 2)),
        spark.GreaterThanOrEqual(("partition",), 2),
        spark.LessThan(("partition",), 0),
        spark.GreaterThan(("offset",), 20),
        spark.LessThanOrEqual(("offset",), 9),
        spark.EqualTo(("offset",), 25),
    ],
)
def test_a_partition_that_cannot_match_is_not_read(condition: spark.Filter) -> None:
    assert wanted(condition) is None


@pytest.mark.parametrize(
    "condition",
    [
        spark.EqualTo(("topic",), "a"),
        spark.In(("topic",), ("a", "b")),
        spark.EqualTo(("partition",), 1),
        spark.Not(spark.EqualTo(("topic",), "a")),
        spark.IsNotNull(("key",)),
        spark.EqualTo(("key",), b"x"),
        spark.StringStartsWith(("topic",), "z"),
        spark.EqualTo(("headers", "key"), "x"),
        spark.GreaterThan(("offset",), None),
    ],
)
def test_a_condition_that_says_nothing_of_the_place_leaves_the_span_whole(
    condition: spark.Filter,
) -> None:
    found = wanted(condition)
    assert found is not None
    assert found.span == SPAN


def test_offsets_shorten_the_span() -> None:
    found = wanted(spark.GreaterThan(("offset",), 12), spark.LessThanOrEqual(("offset",), 14))
    assert found is not None
    assert found.span == Span(TP("a", 1), 12, 15)  # loose by one, and Spark drops it


def test_times_bound_the_batches_in_any_zone() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=5)))
    found = wanted(
        spark.GreaterThanOrEqual(("timestamp",), there),
        spark.LessThanOrEqual(("timestamp",), there + timedelta(microseconds=1_500)),
    )
    assert found == ReadRequest(SPAN, NOON_MS, NOON_MS + 2)


def test_conditions_that_exclude_each_other_leave_nothing() -> None:
    late, early = NOON + timedelta(days=1), NOON
    assert (
        wanted(spark.GreaterThan(("timestamp",), late), spark.LessThan(("timestamp",), early))
        is None
    )
    assert wanted(spark.EqualTo(("topic",), "a"), spark.In(("topic",), ("b",))) is None
