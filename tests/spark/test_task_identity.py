"""What a task knows of itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark import TaskContext

from ottla.spark import sink_steps
from ottla.spark.sink_steps import BatchIdentity, TaskIdentity, current_task


@contextmanager
def inside(**properties: str) -> Iterator[None]:
    """A process in which Spark runs a task; this is how its own worker says so."""
    TaskContext._setTaskContext(
        TaskContext(partitionId=3, attemptNumber=1, localProperties=properties)
    )
    try:
        yield
    finally:
        TaskContext._setTaskContext(None)


def test_a_task_of_a_streaming_query_knows_query_run_and_batch() -> None:
    told = {"sql.streaming.queryId": "q", "spark.jobGroup.id": "r", "streaming.sql.batchId": "7"}
    with inside(**told):
        assert current_task() == TaskIdentity(3, "1", BatchIdentity("q", "r", 7))


@pytest.mark.parametrize("missing", [sink_steps.QUERY, sink_steps.RUN, sink_steps.BATCH])
def test_a_task_outside_of_one_has_no_turn(missing: str) -> None:
    told = {sink_steps.QUERY: "q", sink_steps.RUN: "r", sink_steps.BATCH: "7"}
    del told[missing]
    with inside(**told):
        assert current_task() == TaskIdentity(3, "1", None)


def test_there_is_no_task_on_the_driver() -> None:
    with pytest.raises(AssertionError, match="inside a task"):
        current_task()
