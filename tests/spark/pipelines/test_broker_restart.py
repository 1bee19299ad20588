"""A pipeline goes on when the broker it reads and writes was away."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from ottla.model.clock import SystemClock
from ottla.spark.pipelines.queries import outputs
from ottla.spark.pipelines.running_queries import Run
from ottla.spark.pipelines.views import Views
from tests.spark.pipelines.jobs import DEADLINE_MS, Sent, Stage, values
from tests.spark.restarting_broker import RestartingBroker

COPY = """
name: copy
trigger: 100 milliseconds
restart: {attempts: 20, backoff: 200ms, backoff_max: 1s}
sources:
  letters: {topic: letters, format: string, options: {kafka.default.api.timeout.ms: 1000}}
sinks:
  - {name: copies, from: letters, topic: {name: copies, value: value}}
"""


@pytest.mark.spec("APP-11")
def test_a_query_that_failed_without_its_broker_is_started_again(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = RestartingBroker(tmp_path / "data")
    stage = Stage(spark, broker.servers, tmp_path)
    stop, clock, runs = Event(), SystemClock(), list[Run]()
    ends_ms = clock.mono_ms() + DEADLINE_MS

    def story() -> Generator[None]:
        """What happens beside the query; continued twice a second."""
        with broker.up():
            stage.topics("letters", "copies", partitions=1)
            stage.send("letters", [Sent(b"before")])
            yield
            while runs[0].totals["copies"].rows_in < 1:
                yield
        while "restart 2 of 20" not in caplog.text:
            yield
        with broker.up():
            stage.send("letters", [Sent(b"after")])
            while runs[0].totals["copies"].rows_in < 2:
                yield
            stop.set()
            yield

    def look() -> None:
        assert clock.mono_ms() < ends_ms, "the pipeline does not go on"
        next(steps)

    with closing(story()) as steps:
        look()
        queries = list(outputs(pipeline := stage.pipeline(COPY), Views(spark, pipeline)))
        runs.append(Run(queries, dict, clock, [], [look], restarts=pipeline.restart))
        runs[0].until(stop)
        assert values(stage.read("copies")) == [b"after", b"before"]
    assert "query copies failed, restart 1 of 20 in 0.2 s: " in caplog.text
    assert "TimeoutError: timed out" in caplog.text  # Spark's own words may come before it
