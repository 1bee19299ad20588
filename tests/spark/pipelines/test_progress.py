"""Spark's reports as numbers that people can use."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.clock import WallMs
from ottla.spark.pipelines.progress import ProgressTracker, QueryTotal, positions, query_progress

REPORT = {
    "batchId": 7,
    "numInputRows": 500,
    "durationMs": {"triggerExecution": 250},
    "stateOperators": [{"numRowsTotal": 3}, {"numRowsTotal": 4}],
    "sources": [
        {"endOffset": '{"t": {"0": 10, "1": 20}}'},
        {"endOffset": {"u": {"0": 5}}},
        {"endOffset": None},
    ],
    "sink": {"numOutputRows": 40},
}


def test_a_report_says_what_a_batch_did() -> None:
    progress = query_progress("clean", REPORT, WallMs(1_000))
    assert (progress.batch, progress.rows_in, progress.rows_in_s, progress.rows_out) == (
        7,
        500,
        2_000.0,
        40,
    )
    assert (progress.batch_ms, progress.state_rows) == (250, 7)
    assert progress.line() == "clean: batch 7  500 rows, 2,000/s  250 ms  state 7 rows"
    assert "lag 12 records, 3 s" in progress.with_lag(12, 3.2).line()
    assert json.loads(progress.json())["query"] == "clean"


def test_rows_that_came_too_late_are_counted() -> None:
    operators = [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}, {}]
    progress = query_progress("clean", {**REPORT, "stateOperators": operators}, WallMs(0))
    assert progress.late_rows == 3
    assert progress.line().endswith("3 late rows dropped")
    total = QueryTotal("clean")
    total.add(progress)
    total.add(progress)
    assert total.line().endswith(", 6 late rows dropped")


def test_a_report_without_numbers_is_nothing_done() -> None:
    progress = query_progress("clean", {"batchId": 0}, WallMs(1))
    assert (progress.rows_in, progress.rows_in_s, progress.batch_ms, progress.state_rows) == (
        0,
        0.0,
        0,
        0,
    )


def test_positions_are_those_of_every_source() -> None:
    assert positions(REPORT) == {"t-0": 10, "t-1": 20, "u-0": 5}
    assert positions({"sources": []}) == {}


def test_totals_add_up() -> None:
    total = QueryTotal("clean")
    total.add(query_progress("clean", REPORT, WallMs(0)))
    total.add(query_progress("clean", {**REPORT, "sink": {"numOutputRows": -1}}, WallMs(0)))
    assert total.line() == "clean: 1,000 rows in, 40 out, 2 batches in 0.5 s, 2,000 rows/s"


def test_lag_is_what_was_written_since_and_how_long_ago_that_began() -> None:
    tracker = ProgressTracker()
    tracker.add_ends({"t-0": 100}, WallMs(0))
    assert tracker.lag({"t-0": 100}, WallMs(0)) == (0, 0.0)
    tracker.add_ends({"t-0": 200}, WallMs(1_000))
    assert tracker.lag({"t-0": 100}, WallMs(1_000)) == (100, 1.0)
    tracker.add_ends({"t-0": 200}, WallMs(2_000))
    assert tracker.lag({"t-0": 150}, WallMs(2_000)) == (50, 1.5), "the 150th came half-way"
    assert tracker.lag({"t-0": 200}, WallMs(3_000)) == (0, 0.0)


def test_queries_at_different_places_share_what_was_seen() -> None:
    tracker = ProgressTracker()
    tracker.add_ends({"t-0": 0, "u-0": 0}, WallMs(0))
    tracker.add_ends({"t-0": 10, "u-0": 50}, WallMs(1_000))
    tracker.add_ends({"t-0": 10, "u-0": 50}, WallMs(5_000))
    assert tracker.lag({"t-0": 0}, WallMs(5_000)) == (10, 5.0)
    assert tracker.lag({"t-0": 10, "u-0": 50}, WallMs(5_000)) == (0, 0.0)


def test_partitions_that_nobody_can_tell_of_count_for_nothing() -> None:
    tracker = ProgressTracker()
    assert tracker.lag({"t-0": 5}, WallMs(0)) == (0, 0.0)
    tracker.add_ends({"t-0": 7, "new-0": 100}, WallMs(0))
    assert tracker.lag({"t-0": 5, "gone-0": 9}, WallMs(0))[0] == 2


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30))
def test_lag_is_never_negative_and_never_older_than_the_first_look(
    steps: list[tuple[int, int]],
) -> None:
    tracker, end, read = ProgressTracker(), 0, 0
    for at, (written, taken) in enumerate(steps):
        end += written
        read = min(end, read + taken)
        tracker.add_ends({"t-0": end}, WallMs(at * 1_000))
        records, seconds = tracker.lag({"t-0": read}, WallMs(at * 1_000))
        assert records == end - read
        assert 0 <= seconds <= at
        assert (seconds == 0) or records > 0


@pytest.mark.parametrize("offset", [None, "null", "{}"])
def test_a_source_that_has_not_begun_has_no_position(offset: str | None) -> None:
    assert positions({"sources": [{"endOffset": offset}]}) == {}
