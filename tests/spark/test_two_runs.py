"""Two Sparks on one checkpoint, each of which believes that the query is its own.

Spark itself finds out when both want to write the same file of the checkpoint. A batch that the
first was at when the second came is in both their hands: there it is the sink that decides.
A second Spark takes half a minute; what it does to the ledger is tried each time in `test_writer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from ottla.model.clock import SystemClock
from ottla.testing import Broker
from tests.spark import killed_query
from tests.spark.killed_query import PER_BATCH
from tests.spark.killed_story import DEADLINE_S, Story

LOOK_EVERY_S = 0.05


@contextmanager
def held_until_open(rows: DataFrame, gate: Path) -> Iterator[DataFrame]:
    """Rows that come once the gate is open, which it is at the end in any case."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while not gate.exists():
            Event().wait(LOOK_EVERY_S)
        yield from batches

    try:
        yield rows.mapInArrow(wait, rows.schema)
    finally:
        gate.touch()


@pytest.mark.slow
@pytest.mark.spec("APP-11")
def test_a_second_spark_takes_the_query_over_and_the_first_is_told_so(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    story = Story(broker.bootstrap_servers, tmp_path, "two-runs", "copied")
    story.feed()
    clock, gate = SystemClock(), tmp_path / "gate"
    rows = killed_query.rows("copied", spark, story.servers, story.source)
    with held_until_open(rows, gate) as held:
        writer = held.writeStream.format("ottla").option("topic", story.target)
        writer = writer.option("kafka.bootstrap.servers", story.servers)
        writer = writer.option("checkpointLocation", str(story.checkpoint))
        first = writer.trigger(availableNow=True).start()
        ends_ms = clock.mono_ms() + DEADLINE_S * 1e3
        while story.entry() is None:  # until its tasks are at work
            assert first.isActive and clock.mono_ms() < ends_ms
            Event().wait(LOOK_EVERY_S)

        assert story.live() == 0, story.log  # the second, in a process of its own
        assert first.isActive
        gate.touch()
        with pytest.raises(StreamingQueryException, match="another run of this query is active"):
            first.awaitTermination()
    story.looked()
    assert story.written_rows().total() == story.batches * PER_BATCH
    assert story.left_open() == []
