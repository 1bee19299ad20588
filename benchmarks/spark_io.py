"""Promise: Spark reads topics twice as fast as through its own connector, and writes them faster.

One Spark (local, all cores, with the settings that docs/spark.md advises: Unix sockets to Python
workers, workers forked with their imports, and checkpoints written without processes of their own,
which the connector gains by too), and each format on its own broker: `ottla` on Ottla, `kafka`,
Spark's connector with its jar, on Apache Kafka. Topics, records, partitions and so tasks are the
same, and both give every column unless a line says otherwise. The contenders take turns; the best
of each is kept, after turns that are not counted (they compile, on both sides).

`floor` is a source and a sink in Python that do nothing (`spark_floor`): what Spark's interface
leaves to anybody who uses it.

- rows a second from a topic to `count()` and to a Parquet table
- rows a second into a topic: at least once both, and exactly once for ours
- the time of a record through topic, Spark and topic, at a fixed rate, of the records that were
  sent in the second half of a run: by then everything is warm, and what waited for that is through.
  Each contender has two runs, in turns; the one with the lower p99 is kept

    python -m benchmarks.spark_io [records] [partitions] [seconds of a latency run] [--only WORD]

`--only` runs the races whose name contains the word, or the latency (`through`).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks import rdkafka
from benchmarks.spark_floor import Floor
from tools import kafka_cache, nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZE: Final = 100
WARM_UP: Final = 5
TURNS: Final = 3
RATE: Final = 1_000
TOPIC: Final = "rows"
OTTLA_SETTINGS: Final = {"flush.before.ack": "never"}  # what Kafka does
ADVISED: Final = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "ottla.spark.worker_daemon",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
}
_WAIT_S: Final = 60.0


class Side(NamedTuple):
    """A format, and the broker it is measured on."""

    format: str
    bootstrap: str
    spark: SparkSession
    folder: Path
    own: Mapping[str, str] = {}
    """Options of every read."""

    def read(self, **options: str) -> DataFrame:
        reader = self.spark.read.format(self.format).option("subscribe", TOPIC).options(**self.own)
        return reader.option("kafka.bootstrap.servers", self.bootstrap).options(**options).load()

    def write(self, rows: DataFrame, topic: str, **options: str) -> None:
        writer = rows.write.format(self.format).mode("append").option("topic", topic)
        writer.option("kafka.bootstrap.servers", self.bootstrap).options(**options).save()

    def topic(self, name: str, partitions: int) -> str:
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(_WAIT_S)
        return name


Job = Callable[[Side, int], None]


def count(side: Side, records: int) -> None:
    seen = side.read().selectExpr("count(value)", "sum(length(value))").first()
    assert seen is not None and seen[0] == records


def count_value(side: Side, records: int) -> None:
    """As `count`, with the one column that is wanted named; ours alone can be told."""
    seen = side.read(columns="value").selectExpr("count(value)", "sum(length(value))").first()
    assert seen is not None and seen[0] == records


def parquet(side: Side, records: int) -> None:
    side.read().write.mode("overwrite").parquet(str(side.folder / f"table-{side.format}"))


def _rows(side: Side, records: int) -> DataFrame:
    value = f"rpad(cast(id as string), {SIZE}, 'x')"
    return side.spark.range(records).selectExpr("cast(id as string) key", f"{value} value")


def sink(side: Side, records: int) -> None:
    options = {"ottla.exactly.once": "false"} if side.format == "ottla" else {}
    side.write(_rows(side, records), "written", **options)


def exactly_once_sink(side: Side, records: int) -> None:
    side.write(_rows(side, records), "written")


class Contender(NamedTuple):
    format: str
    job: Job
    note: str = ""


class Race(NamedTuple):
    """Contenders that take turns; ratios are to the first."""

    name: str
    contenders: tuple[Contender, ...]


JOBS: Final = (
    Race(
        "topic to count()",
        (
            Contender("kafka", count),
            Contender("ottla", count),
            Contender("ottla", count_value, "columns=value"),
            Contender("floor", count),
        ),
    ),
    Race(
        "topic to Parquet",
        (Contender("kafka", parquet), Contender("ottla", parquet), Contender("floor", parquet)),
    ),
    Race(
        "rows to topic",
        (
            Contender("kafka", sink, "at least once"),
            Contender("ottla", sink, "at least once"),
            Contender("ottla", exactly_once_sink, "exactly once"),
            Contender("floor", sink),
        ),
    ),
)


def measure(sides: dict[str, Side], records: int, only: str) -> None:
    """Rows a second, by job and format."""
    for name, contenders in JOBS:
        if only not in name:
            continue
        best = dict.fromkeys(contenders, 0.0)
        for turn in range(WARM_UP + TURNS):
            for contender in contenders:
                start = time.perf_counter()
                contender.job(sides[contender.format], records)
                rate = records / (time.perf_counter() - start)
                if turn >= WARM_UP:
                    best[contender] = max(best[contender], rate)
        for contender, rate in best.items():
            label = f"{name}, {contender.note}" if contender.note else name
            ratio = rate / best[contenders[0]]
            print(f"{label:32} {contender.format:6} {rate:>11,.0f} rows/s {ratio:6.2f}", flush=True)


def through(side: Side, seconds: int, **options: str) -> list[float]:
    """Milliseconds of each record from `send` through Spark until it is read again."""
    tag = f"{side.format}-{'-'.join(options.values()) or 'default'}-{time.monotonic_ns()}"
    source, target = side.topic(f"in-{tag}", 2), side.topic(f"out-{tag}", 2)
    reader = side.spark.readStream.format(side.format).option("subscribe", source)
    reader = reader.option("kafka.bootstrap.servers", side.bootstrap)
    writer = reader.option("startingOffsets", "earliest").load().select("key", "value").writeStream
    writer = writer.format(side.format).option("kafka.bootstrap.servers", side.bootstrap)
    writer = writer.option("topic", target).options(**options)
    query = writer.option("checkpointLocation", str(side.folder / f"checkpoint-{tag}")).start()
    over = threading.Event()
    feeder = threading.Thread(target=_feed, args=(side.bootstrap, source, over))
    feeder.start()
    try:
        return list(_times(side.bootstrap, target, seconds))
    finally:
        over.set()
        feeder.join()
        query.stop()


def _feed(bootstrap: str, topic: str, over: threading.Event) -> None:
    """Records with the time they were sent, at a fixed rate."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    start, sent = time.monotonic(), 0
    while not over.is_set():
        while sent < (time.monotonic() - start) * RATE:
            producer.produce(topic, str(time.monotonic_ns()).encode())
            sent += 1
        producer.poll(0)
        time.sleep(0.001)
    producer.flush()


def _times(bootstrap: str, topic: str, seconds: int) -> Iterator[float]:
    """Times of what was sent in the second half of a run."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.subscribe([topic])
    start_ns = time.monotonic_ns()
    while time.monotonic_ns() - start_ns < seconds * 1e9:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            sent_ns = int(message.value() or 0)
            if sent_ns - start_ns > seconds * 1e9 / 2:
                yield (time.monotonic_ns() - sent_ns) / 1e6
    consumer.close()


def floor_times(side: Side, seconds: int) -> list[float]:
    """Milliseconds from the moment a row is due until a sink has it, without a topic."""
    path = side.folder / f"arrivals-{time.monotonic_ns()}"
    reader = side.spark.readStream.format("floor").option("rate", str(RATE))
    writer = reader.load().writeStream.format("floor").option("path", str(path))
    query = writer.option("checkpointLocation", f"{path}-checkpoint").start()
    start_ns = time.monotonic_ns()
    query.awaitTermination(seconds)
    query.stop()
    rows = [line.split() for line in path.read_text().splitlines()]
    return [float(ms) for due, ms in rows if int(due) - start_ns > seconds * 1e9 / 2]


class Passage(NamedTuple):
    """One way through Spark."""

    format: str
    kind: str
    options: tuple[tuple[str, str], ...] = ()

    def times(self, side: Side, seconds: int) -> list[float]:
        if self.format == "floor":
            return floor_times(side, seconds)
        return through(side, seconds, **dict(self.options))


PASSAGES: Final = (
    Passage("kafka", "at least once"),
    Passage("ottla", "at least once", (("ottla.exactly.once", "false"),)),
    Passage("ottla", "exactly once"),
    Passage("floor", "no topics"),
)


def latency(sides: dict[str, Side], seconds: int) -> None:
    best: dict[Passage, tuple[float, float]] = {}
    for turn in range(2):
        for passage in PASSAGES if turn == 0 else reversed(PASSAGES):
            times = passage.times(sides[passage.format], seconds)
            seen = None
            if len(times) > 100:
                seen = (statistics.quantiles(times, n=100)[98], statistics.median(times))
                best[passage] = min(best.get(passage, seen), seen)
            _say_latency(passage, "one run: ", seen)
    for passage in PASSAGES:
        _say_latency(passage, "", best.get(passage))


def _say_latency(passage: Passage, prefix: str, seen: tuple[float, float] | None) -> None:
    label = f"{prefix}through Spark, {passage.kind:14} {passage.format:6}"
    told = "nothing came through in time"
    if seen:
        told = f"p50 {seen[1]:8,.0f} ms  p99 {seen[0]:8,.0f} ms"
    print(f"{label} {told}", flush=True)


@contextmanager
def session(folder: Path, memory: str = "2g") -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    import ottla.spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = ",".join(str(path) for path in kafka_cache.jars("spark-connector").glob("*.jar"))
    made = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", memory)
        .config("spark.local.dir", str(folder / "spark"))
        .config("spark.jars", jars)
        .config(map={**ADVISED})
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    ottla.spark.register(made)
    made.dataSource.register(Floor)
    try:
        yield made
    finally:
        made.stop()


def main(args: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.spark_io")
    parser.add_argument("records", type=int, nargs="?", default=2_000_000)
    parser.add_argument("partitions", type=int, nargs="?", default=4)
    parser.add_argument("seconds", type=int, nargs="?", default=40)
    parser.add_argument("--only", default="")
    given = parser.parse_args(args)
    records, partitions = given.records, given.partitions
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            nodes.ottla(folder / "ottla", OTTLA_SETTINGS) as ours,
            nodes.kafka(folder / "kafka") as theirs,
            session(folder) as spark,
        ):
            sides: dict[str, Side] = {}
            for format, node in (("ottla", ours), ("kafka", theirs)):
                sides[format] = Side(format, node.bootstrap, spark, folder)
                for topic in (TOPIC, "written"):
                    sides[format].topic(topic, partitions)
                load: dict[str, Any] = {"topic": TOPIC, "partitions": partitions, "size": SIZE}
                load.update(bootstrap=node.bootstrap, acks=1, bytes=records * SIZE)
                records = int(rdkafka.produce(load)["records"])
            own = {"rows": str(records), "partitions": str(partitions), "size": str(SIZE)}
            sides["floor"] = Side("floor", "", spark, folder, own)
            measure(sides, records, given.only)
            if given.only in "through":
                latency(sides, given.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
