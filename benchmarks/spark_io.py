"""Promise: Spark reads topics twice as fast as through its own connector, and writes them faster.

One Spark (local, all cores, with the two settings that docs/spark.md advises: Unix sockets to
Python workers, and checkpoints written without processes of their own, which the connector
gains by too), and each format on its own broker: `ottla` on Ottla, `kafka`, Spark's
connector with its jar, on Apache Kafka. Topics, records, partitions and so tasks are the same, and
both give every column unless a line says otherwise. The contenders take turns; the best of each is
kept, after turns that are not counted (they compile, on both sides).

- rows a second from a topic to `count()` and to a Parquet table
- rows a second into a topic: at least once both, and exactly once for ours
- the time of a record through topic, Spark and topic, at a fixed rate, of the records that were
  sent in the second half of a run: by then everything is warm, and what waited for that is through

    python -m benchmarks.spark_io [records] [partitions] [seconds of the latency run]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks import rdkafka
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

    def read(self, **options: str) -> DataFrame:
        reader = self.spark.read.format(self.format).option("subscribe", TOPIC)
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


class Race(NamedTuple):
    name: str
    job: Job
    formats: tuple[str, ...]
    base: tuple[str, str]
    """The job and format that the others' ratio is against."""


COUNT: Final = ("topic to count()", "kafka")
AT_LEAST_ONCE: Final = "rows to topic, at least once"
JOBS: Final = (
    Race(COUNT[0], count, ("kafka", "ottla"), COUNT),
    Race("topic to count(), columns=value", count_value, ("ottla",), COUNT),
    Race("topic to Parquet", parquet, ("kafka", "ottla"), ("topic to Parquet", "kafka")),
    Race(AT_LEAST_ONCE, sink, ("kafka", "ottla"), (AT_LEAST_ONCE, "kafka")),
    Race("rows to topic, exactly once", exactly_once_sink, ("ottla",), (AT_LEAST_ONCE, "ottla")),
)


def measure(sides: dict[str, Side], records: int) -> None:
    """Rows a second, by job and format."""
    best: dict[tuple[str, str], float] = {}
    for name, job, formats, base in JOBS:
        for turn in range(WARM_UP + TURNS):
            for format in formats:
                start = time.perf_counter()
                job(sides[format], records)
                rate = records / (time.perf_counter() - start)
                if turn >= WARM_UP:
                    best[name, format] = max(best.get((name, format), 0.0), rate)
        for format in formats:
            rate = best[name, format]
            print(
                f"{name:32} {format:6} {rate:>11,.0f} rows/s {rate / best[base]:6.2f}", flush=True
            )


def through(side: Side, seconds: int, **options: str) -> list[float]:
    """Milliseconds of each record from `send` through Spark until it is read again."""
    tag = f"{side.format}-{'-'.join(options.values()) or 'default'}"
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


def latency(sides: dict[str, Side], seconds: int) -> None:
    for format, options in (
        ("kafka", {}),
        ("ottla", {"ottla.exactly.once": "false"}),
        ("ottla", {}),
    ):
        times = through(sides[format], seconds, **options)
        kind = "at least once" if format == "kafka" or options else "exactly once"
        if times:
            middle = statistics.median(times)
            last = statistics.quantiles(times, n=100)[98] if len(times) > 100 else max(times)
            print(f"through Spark, {kind:14} {format:6} p50 {middle:8,.0f} ms  p99 {last:8,.0f} ms")
        else:
            print(f"through Spark, {kind:14} {format:6} nothing came through in time")


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    import ottla.spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = ",".join(str(path) for path in kafka_cache.jars("spark-connector").glob("*.jar"))
    made = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(folder / "spark"))
        .config("spark.jars", jars)
        .config(map={**ADVISED})
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    ottla.spark.register(made)
    try:
        yield made
    finally:
        made.stop()


def main(records: int, partitions: int, seconds: int) -> None:
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
                made = int(rdkafka.produce(load)["records"])
            measure(sides, made)
            latency(sides, seconds)


if __name__ == "__main__":
    main(*(int(given) for given in [*sys.argv[1:], *("2000000", "4", "40")[len(sys.argv) - 1 :]]))
