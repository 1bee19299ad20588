"""Promise: the first batches of a pipeline with six sinks come within 5 s of a started session.

The template `views` as it stands (three sinks with state, a Parquet table and two dead-letter
topics), a broker of its own and a few records. The clock starts when the session is there, and a
sink counts when the first batch of its query is done.

Beside it, what Spark itself needs for sources and sinks in Python, started the same way:

    nothing   as many queries, from a source to a sink of no content
    steps     the template's own steps and state between a source and sinks of no content

Each is a process of its own, run in turn: *cold* is its first start, *warm* the second in the same
session. Each line has the median of the rounds; `phases` is where the first batches spent their
time by Spark's own count, added up over the queries, which overlap.

    python -m benchmarks.pipeline_start [--rounds 3] [--records 1000] [--phases]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

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
from ottla.spark import pipelines, rows
from ottla.spark.pipelines import templates, yaml_file
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.pipelines.queries import QueryOutput, outputs
from ottla.spark.pipelines.running_queries import Run
from ottla.spark.pipelines.session import session, stop_session
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.views import Views
from tools import nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import Row, StructType

TOPICS: Final = ("page-views", "clean-views", "top-pages", "sessions", "page-views-dead")
GOAL_S: Final = 5.0
LIMIT_S: Final = 90.0
TURNS: Final = ("cold", "warm")
VALUE: Final = b'{"id":"1","user":"u","url":"/","at":"2026-05-01T12:00:00Z"}'


class EmptyReader(DataSourceStreamReader):
    """A record, the same in each batch, without a broker."""

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"at": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(start["at"])] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        yield (None, VALUE, "page-views", 0, 0, datetime.now(UTC), 0, None)


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
        return rows.schema((*rows.COLUMNS, rows.HEADERS))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return EmptyReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return EmptyWriter()


class FirstBatches:
    """When each query was done with its first batch."""

    def __init__(self, spark: SparkSession, queries: int) -> None:
        self.stop = threading.Event()
        self.seconds: dict[str, float] = {}
        self.phases_ms: Counter[str] = Counter()
        self._spark = spark
        self._queries = queries
        self._began = time.perf_counter()

    def on_batch(self, progress: QueryProgress) -> None:
        self.seconds.setdefault(progress.query, time.perf_counter() - self._began)
        if len(self.seconds) == self._queries:
            for query in self._spark.streams.active:
                first = next((each for each in query.recentProgress if each.numInputRows), None)
                self.phases_ms.update({} if first is None else dict(first.durationMs))
            self.stop.set()

    def result(self) -> Mapping[str, Any]:
        missing = self._queries - len(self.seconds)
        last = LIMIT_S if missing else max(self.seconds.values())
        return {"last": last, "queries": self.seconds, "phases": dict(self.phases_ms)}


def template(spark: SparkSession, servers: str, folder: Path) -> FirstBatches:
    """The template, with a checkpoint of its own."""
    pipeline = _pipeline(servers, folder)
    queries = len(list(outputs(pipeline, Views(spark, pipeline))))
    first = FirstBatches(spark, queries)
    with contextlib.suppress(pipelines.StopTimeout):
        pipelines.run(
            pipeline, spark=spark, stop=first.stop, seconds=LIMIT_S, listeners=[first.on_batch]
        )
    return first


def nothing(spark: SparkSession, servers: str, folder: Path) -> FirstBatches:
    """As many queries, each from the empty source to the empty sink."""
    spark.dataSource.register(EmptySource)
    pipeline = _pipeline(servers, folder)
    names = [each.name for each in outputs(pipeline, Views(spark, pipeline))]
    return _run(spark, folder, {name: _empty(spark).writeStream.format("empty") for name in names})


def steps(spark: SparkSession, servers: str, folder: Path) -> FirstBatches:
    """The template's views of the empty source; its sinks with state, and one for the others."""
    spark.dataSource.register(EmptySource)
    pipeline = _pipeline(servers, folder)
    views = Views(spark, pipeline, lambda _: _empty(spark))
    kept = views.frames
    changes = kept["minutes"].writeStream.outputMode("update")
    writers = {
        "clean": kept["once"].writeStream.format("empty"),
        "top": changes.foreachBatch(_drop),
        "seen": kept["sessions"].writeStream.format("empty"),
        "views_sinks": views.judged["views"].writeStream.foreachBatch(_drop),
    }
    return _run(spark, folder, writers)


PARTS: Final[Mapping[str, Callable[[SparkSession, str, Path], FirstBatches]]] = {
    "template": template,
    "nothing": nothing,
    "steps": steps,
}


def _empty(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("empty").load()


def _drop(batch: DataFrame, _: int) -> None:
    batch.write.format("noop").mode("append").save()


def _run(spark: SparkSession, folder: Path, writers: Mapping[str, Any]) -> FirstBatches:
    queries = [
        QueryOutput(
            name,
            writer.option("checkpointLocation", str(folder / "checkpoint" / name))
            .queryName(name)
            .trigger(processingTime="1 second"),
        )
        for name, writer in writers.items()
    ]
    first = FirstBatches(spark, len(queries))
    timer = threading.Timer(LIMIT_S, first.stop.set)
    timer.start()
    Run(queries, dict, SystemClock(), [first.on_batch]).until(first.stop)
    timer.cancel()
    return first


def _pipeline(servers: str, folder: Path) -> Pipeline:
    path = folder / "views.yaml"
    path.write_text(templates.text("views").replace("./lake", str(folder / "lake")))
    pipeline = yaml_file.open_pipeline(path, [f"bootstrap={servers}"])
    return replace(pipeline, checkpoint=str(folder / "checkpoint"))


def _fill(servers: str, records: int) -> None:
    with ottla.Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, 2) for name in TOPICS]).all()
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for number in range(records):
            user = f'"u{number % 50}"' if number % 10 else "null"
            event = f'{{"id":"{number}","user":{user},"url":"/","at":"2026-05-01T12:00:00Z"}}'
            producer.send("page-views", event.encode() if number % 7 else b"oops")


def run_part(part: str, servers: str, folder: Path) -> None:
    """One process: its session, the part twice, and the results as JSON."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session("bench", None, {}, str(folder))
    results = {}
    for turn in TURNS:
        place = folder / turn
        place.mkdir()
        results[turn] = PARTS[part](spark, servers, place).result()
    stop_session(spark)
    (folder / "results.json").write_text(json.dumps(results))
    sys.stdout.flush()
    os._exit(0)  # a Spark that does not stop is not waited for


def main(args: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.pipeline_start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--records", type=int, default=1_000)
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--part", nargs=3, metavar=("PART", "SERVERS", "FOLDER"))
    options = parser.parse_args(args)
    if options.part:
        part, servers, folder = options.part
        return run_part(part, servers, Path(folder))
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as name, nodes.ottla(Path(name) / "ottla", {}) as node:
        _fill(node.bootstrap, options.records)
        for number in range(options.rounds):
            for part in PARTS:
                place = Path(name) / f"{part}-{number}"
                place.mkdir()
                words = ["--part", part, node.bootstrap, str(place)]
                command = [sys.executable, "-m", "benchmarks.pipeline_start", *words]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                for turn, result in json.loads((place / "results.json").read_text()).items():
                    found.setdefault((part, turn), []).append(result)
    for turn in TURNS:
        for part in PARTS:
            print(_line(part, turn, found[part, turn], with_phases=options.phases), flush=True)
    return None


def _line(part: str, turn: str, results: Sequence[Mapping[str, Any]], *, with_phases: bool) -> str:
    seconds = median(result["last"] for result in results)
    last = results[-1]
    each = ", ".join(f"{name} {taken:.1f}" for name, taken in last["queries"].items())
    text = f"{turn} {part}: {seconds:.1f} s (last round: {each})"
    if part == "template":
        text += f"; goal {GOAL_S:.0f} s: {'met' if seconds <= GOAL_S else 'MISSED'}"
    if with_phases:
        phases = sorted(last["phases"].items(), key=lambda phase: -phase[1])
        text += "\n  phases, ms: " + ", ".join(f"{name} {taken:,}" for name, taken in phases)
    return text


if __name__ == "__main__":
    main(sys.argv[1:])
