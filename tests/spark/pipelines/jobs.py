"""Ready-made jobs as a test runs them: from the template, on a broker of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, TypeAlias

import yaml
from pyspark.sql import SparkSession

import ottla
from ottla.client.admin import NewTopic
from ottla.client.consumer import record
from ottla.model.clock import SystemClock
from ottla.spark.pipelines import templates, yaml_file
from ottla.spark.pipelines.queries import outputs
from ottla.spark.pipelines.running_queries import Run
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.topic_ends import TopicEnds
from ottla.spark.pipelines.views import Views

DEADLINE_MS = 240_000
Record: TypeAlias = record.Record[Any, Any]


class Sent(NamedTuple):
    """A record to send."""

    value: bytes | None
    key: bytes | None = None
    headers: Mapping[str, str] = {}
    timestamp_ms: int | None = None
    partition: int | None = None


class Stage:
    """A broker, a Spark and a folder, as a job wants them."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self.spark = spark
        self.servers = servers
        self.folder = folder

    def topics(self, *names: str, partitions: int = 2) -> None:
        with ottla.Admin(bootstrap_servers=self.servers) as admin:
            admin.create_topics([NewTopic(name, partitions) for name in names]).all()

    def send(self, topic: str, those: Iterable[Sent]) -> None:
        with ottla.Producer(bootstrap_servers=self.servers) as producer:
            for one in those:
                headers = [(name, text.encode()) for name, text in one.headers.items()]
                producer.send(
                    topic,
                    one.value,
                    key=one.key,
                    headers=headers,
                    timestamp_ms=one.timestamp_ms,
                    partition=one.partition,
                )

    def template(self, name: str) -> Pipeline:
        """A template, in this folder and for this broker; nothing else is changed."""
        text = templates.text(name).replace("localhost:9092", self.servers)
        return self.pipeline(text.replace("./lake", str(self.folder / "lake")))

    def pipeline(self, text: str) -> Pipeline:
        words = yaml.safe_load(text)
        words.setdefault("bootstrap", self.servers)
        words.setdefault("checkpoint", str(self.folder / "checkpoints" / words["name"]))
        return yaml_file.parse(words, self.folder)

    def once(self, pipeline: Pipeline) -> Run:
        """Read what is there, and end."""
        return self.run(replace(pipeline, trigger="once"), lambda: False)

    def run(self, pipeline: Pipeline, done: Callable[[], bool]) -> Run:
        """Run until it has ended, or is done."""
        clock, stop = SystemClock(), Event()
        ends_ms = clock.mono_ms() + DEADLINE_MS

        def look() -> None:
            assert clock.mono_ms() < ends_ms, "the pipeline does not come to its end"
            if done():
                stop.set()

        with TopicEnds(pipeline.sources, clock) as ends:
            running = Run(
                list(outputs(pipeline, Views(self.spark, pipeline))), ends, clock, [], [look]
            )
            running.until(stop)
        return running

    def read(self, topic: str) -> list[Record]:
        return read(self.servers, topic)

    def forget_the_last_commit(self, pipeline: Pipeline, sink: str) -> None:
        """As if the driver had died after the sink's commit and before Spark's own."""
        commits = Path(pipeline.checkpoint) / sink / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)


def read(servers: str, topic: str) -> list[Record]:
    """Every committed record of a topic, partition by partition."""
    consumer: ottla.Consumer[Any, Any] = ottla.Consumer(
        bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    found: list[Record] = []
    with consumer:
        partitions = [ottla.TopicPartition(topic, at) for at in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(tp) < ends[tp] for tp in partitions):
            found += consumer.poll(1.0)
    return sorted(found, key=lambda one: (one.partition, one.offset))


def values(found: Sequence[Record]) -> list[bytes]:
    return sorted(one.value or b"" for one in found)


def headers(record: Record) -> dict[str, str]:
    return {name: (value or b"").decode() for name, value in record.headers}
