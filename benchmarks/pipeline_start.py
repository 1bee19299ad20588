"""Promise: the first batches of a pipeline with six sinks come within 5 s of a started session.

The template `views` as it stands (three sinks with state, a Parquet table and two dead-letter
topics), a broker of its own and a few records. The clock starts when the session is there, and a
sink counts when the first batch of its query is done.

The floor is what Spark itself needs for sources and sinks in Python: queries with a source and a
sink of no content, started the same way, one and six of them.

    python -m benchmarks.pipeline_start [records]
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

import ottla
from ottla.client.admin import NewTopic
from ottla.model.clock import SystemClock
from ottla.spark import pipelines
from ottla.spark.pipelines import templates, yaml_file
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.pipelines.queries import QueryOutput, outputs
from ottla.spark.pipelines.running_queries import Run
from ottla.spark.pipelines.session import session, stop_session
from ottla.spark.pipelines.views import Views
from tools import nodes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import Row, StructType

TOPICS: Final = ("page-views", "clean-views", "top-pages", "sessions", "page-views-dead")
GOAL_S: Final = 5.0
LIMIT_S: Final = 90.0
QUERIES: Final = 6


class EmptyReader(DataSourceStreamReader):
    """One row a batch, made of nothing."""

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"at": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(start["at"])] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (1,)


class EmptyWriter(DataSourceStreamWriter):
    """Takes rows and keeps nothing of them."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class EmptySource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "empty"

    def schema(self) -> str:
        return "n int"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return EmptyReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return EmptyWriter()


class FirstBatches:
    """When each query was done with its first batch."""

    def __init__(self, queries: int) -> None:
        self.stop = threading.Event()
        self.seconds: dict[str, float] = {}
        self.queries = queries
        self._began = time.perf_counter()

    def on_batch(self, progress: QueryProgress) -> None:
        self.seconds.setdefault(progress.query, time.perf_counter() - self._began)
        if not self.missing:
            self.stop.set()

    @property
    def last(self) -> float:
        return max(self.seconds.values(), default=LIMIT_S)

    @property
    def missing(self) -> int:
        return self.queries - len(self.seconds)

    def line(self) -> str:
        each = ", ".join(f"{name} {taken:.1f}" for name, taken in self.seconds.items())
        late = f"; {self.missing} had none in {LIMIT_S:.0f} s" if self.missing else ""
        return f"{self.last:.1f} s ({each}{late})"


def floor(spark: SparkSession, queries: int, folder: Path) -> FirstBatches:
    """Queries that do nothing, through Spark's interface for sources in Python."""
    spark.dataSource.register(EmptySource)
    outputs = []
    for number in range(queries):
        name = f"empty-{queries}-{number}"
        writer = spark.readStream.format("empty").load().writeStream.format("empty")
        writer = writer.option("checkpointLocation", str(folder / name)).queryName(name)
        outputs.append(QueryOutput(name, writer.trigger(processingTime="1 second")))
    first = FirstBatches(queries)
    timer = threading.Timer(LIMIT_S, first.stop.set)
    timer.start()
    Run(outputs, dict, SystemClock(), [first.on_batch]).until(first.stop)
    timer.cancel()
    return first


def start(spark: SparkSession, servers: str, folder: Path) -> FirstBatches:
    """The template, with a checkpoint of its own."""
    path = folder / "views.yaml"
    path.write_text(templates.text("views").replace("./lake", str(folder / "lake")))
    pipeline = yaml_file.open_pipeline(path, [f"bootstrap={servers}"])
    pipeline = replace(pipeline, checkpoint=str(folder / "checkpoint"))
    queries = len(list(outputs(pipeline, Views(spark, pipeline))))
    first = FirstBatches(queries)
    with contextlib.suppress(pipelines.StopTimeout):
        pipelines.run(
            pipeline, spark=spark, stop=first.stop, seconds=LIMIT_S, listeners=[first.on_batch]
        )
    return first


def _fill(servers: str, records: int) -> None:
    with ottla.Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, 2) for name in TOPICS]).all()
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for number in range(records):
            user = f'"u{number % 50}"' if number % 10 else "null"
            event = f'{{"id":"{number}","user":{user},"url":"/","at":"2026-05-01T12:00:00Z"}}'
            producer.send("page-views", event.encode() if number % 7 else b"oops")


def main(args: Sequence[str] = ()) -> None:
    records = int(args[0]) if args else 1_000
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as name, nodes.ottla(Path(name) / "ottla", {}) as node:
        folder = Path(name)
        _fill(node.bootstrap, records)
        spark = session("bench", None, {}, str(folder))
        for what in ("cold", "warm"):
            place = folder / what
            place.mkdir()
            first = start(spark, node.bootstrap, place)
            verdict = "met" if first.last <= GOAL_S and not first.missing else "MISSED"
            print(f"six sinks, {what}: {first.line()}; goal {GOAL_S:.0f} s: {verdict}", flush=True)
        for queries in (1, QUERIES):
            print(
                f"floor, {queries} empty, warm: {floor(spark, queries, folder).line()}", flush=True
            )
        stop_session(spark)
        spark = session("bench", None, {}, str(folder))
        cold = floor(spark, QUERIES, folder / "cold")
        print(f"floor, {QUERIES} empty, new session: {cold.line()}", flush=True)
        stop_session(spark)


if __name__ == "__main__":
    main(sys.argv[1:])
