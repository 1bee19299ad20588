"""Which task of which batch this process is working for.

Owns: what Spark tells a task about itself. Never: more than reading it.

Spark does not hand the batch to a writer, but the task's properties have it, with the query and
the run: a run is one life of a query, from `start` to its end (Spark makes it the job group).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark import TaskContext

QUERY: Final = "sql.streaming.queryId"
RUN: Final = "spark.jobGroup.id"
BATCH: Final = "streaming.sql.batchId"


class BatchIdentity(NamedTuple):
    """One batch of one run of one query."""

    query: str
    run: str
    batch: int


class TaskIdentity(NamedTuple):
    """One attempt of one task."""

    partition: int
    attempt: str
    turn: BatchIdentity | None
    """None outside of a streaming query."""


def current() -> TaskIdentity:
    """The task that this process does now."""
    context = TaskContext.get()
    assert context is not None, "a writer writes inside a task"
    query, run, batch = (context.getLocalProperty(name) for name in (QUERY, RUN, BATCH))
    turn = None
    if query is not None and run is not None and batch is not None:
        turn = BatchIdentity(query, run, int(batch))
    return TaskIdentity(context.partitionId(), str(context.attemptNumber()), turn)
