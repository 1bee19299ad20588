"""What a task knows of itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark import TaskContext

from ottla.spark import task_identity
from ottla.spark.task_identity import BatchIdentity, TaskIdentity


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
        assert task_identity.current() == TaskIdentity(3, "1", BatchIdentity("q", "r", 7))


@pytest.mark.parametrize("missing", [task_identity.QUERY, task_identity.RUN, task_identity.BATCH])
def test_a_task_outside_of_one_has_no_turn(missing: str) -> None:
    told = {task_identity.QUERY: "q", task_identity.RUN: "r", task_identity.BATCH: "7"}
    del told[missing]
    with inside(**told):
        assert task_identity.current() == TaskIdentity(3, "1", None)


def test_there_is_no_task_on_the_driver() -> None:
    with pytest.raises(AssertionError, match="inside a task"):
        task_identity.current()
