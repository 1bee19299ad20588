"""Promise: at least 1.2 times Kafka's throughput, for at most two thirds of its CPU per GB.

Each shape is filled by the load driver and read back by it, by librdkafka and by Kafka's Java
consumer; then librdkafka and Kafka's own perf tool produce. All read from the page cache, as
consumers that keep up do.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.contenders import Contender, cpu_s
from benchmarks.scenario import DEFAULT, KAFKA, OTTLA, Readings, Scenario, cores
from tools import kafka_cache

GB: Final = 1e9
JAVA_SHARE: Final = 4  # Kafka's tools are slow clients; they move a quarter
CONNECTIONS: Final = 4
_JAVA: Final = Path(__file__).parent / "java" / "AssignedConsumer.java"
_CLIENT_JVM: Final = ("-Xmx512m", "-XX:+UseG1GC")


class Shape(NamedTuple):
    size: int
    partitions: int
    acks: int

    @property
    def volume(self) -> int:
        """Bytes that a measurement moves: seconds for either broker, and still in memory."""
        return 250_000_000 if self.size == 100 else 500_000_000 if self.partitions > 12 else 10**9

    def __str__(self) -> str:
        size = "1 KB" if self.size == 1000 else f"{self.size} B"
        return f"{size}, {self.partitions} partitions, acks={'all' if self.acks < 0 else self.acks}"


def scenarios(full: bool) -> Iterator[Scenario]:
    shapes = [Shape(size, count, 1) for size in (1000, 100) for count in (1, 12, 200)]
    everywhere = [Shape(size, count, -1) for size in (1000, 100) for count in (1, 12, 200)]
    shapes += everywhere if full else [Shape(1000, 12, -1), Shape(100, 12, -1)]
    if full:
        shapes += [Shape(1000, 1000, 1)]
    for shape in shapes:
        yield _scenario(shape, java=full or shape.partitions == 12)


def _scenario(shape: Shape, *, java: bool) -> Scenario:
    def measure(contender: Contender) -> Readings:
        readings: dict[str, float] = {}
        with contender.topic(shape.partitions) as topic:
            _fill_and_read(contender, topic, shape, readings)
            if java and shape.acks == 1:
                _java_consume(contender, topic, shape, readings)
        with contender.topic(shape.partitions) as topic:
            load = {"topic": topic, "bytes": shape.volume, **shape._asdict()}
            _note(readings, "librdkafka produce", contender.drive("rdkafka", do="produce", **load))
        if java:
            with contender.topic(shape.partitions) as topic:
                _java_produce(contender, topic, shape, readings)
        return readings

    # acks=1 is never flushed before its reply: both of Ottla's policies are one there.
    contenders = (KAFKA, OTTLA) if shape.acks == 1 else (KAFKA, OTTLA, DEFAULT)
    return Scenario(str(shape), measure, contenders)


def _fill_and_read(
    contender: Contender, topic: str, shape: Shape, readings: dict[str, float]
) -> None:
    load = {"topic": topic, "connections": CONNECTIONS, **shape._asdict()}
    wrote = contender.drive("raw", do="produce", bytes=shape.volume, **load)
    _note(readings, "raw produce", wrote)
    if shape.acks == 1:  # reading does not depend on how it was written
        _note(readings, "raw consume", contender.drive("raw", do="consume", **load))
        read = contender.drive("rdkafka", do="consume", records=wrote["records"], **load)
        _note(readings, "librdkafka consume", read)


def _java_consume(
    contender: Contender, topic: str, shape: Shape, readings: dict[str, float]
) -> None:
    path = kafka_cache.compiled("clients", [_JAVA])
    args = (contender.bootstrap, topic, str(shape.partitions))
    command = kafka_cache.java(path, "AssignedConsumer", *args, options=_CLIENT_JVM)
    before = cpu_s(contender.node.pid)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, records = done.stdout.split()
    spent = cpu_s(contender.node.pid) - before
    moved = int(records) * shape.size
    figures = {"seconds": float(seconds), "bytes": moved, "cpu_s": spent}
    _note(readings, "Java consume", figures)


def _java_produce(
    contender: Contender, topic: str, shape: Shape, readings: dict[str, float]
) -> None:
    count = shape.volume // shape.size // JAVA_SHARE
    asked = {"--topic": topic, "--num-records": count, "--record-size": shape.size}
    asked |= {"--throughput": -1, "--bootstrap-server": contender.bootstrap}
    words = [str(word) for pair in asked.items() for word in pair]
    words += ["--command-property", f"acks={'all' if shape.acks < 0 else shape.acks}"]
    path = kafka_cache.classpath("server")
    main = kafka_cache.TOOLS["kafka-producer-perf-test"]
    command = kafka_cache.java(path, main, *words, options=_CLIENT_JVM)
    before = cpu_s(contender.node.pid)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rate = perf_test_rate(done.stdout)
    moved = count * shape.size
    spent = cpu_s(contender.node.pid) - before
    figures = {"seconds": count / rate, "bytes": moved, "cpu_s": spent}
    _note(readings, "kafka-producer-perf-test", figures)


def perf_test_rate(said: str) -> float:
    """Records a second, from the last line that Kafka's perf tool writes."""
    return float(re.findall(r"([\d.]+) records/sec", said)[-1])


def _note(readings: dict[str, float], what: str, figures: dict[str, float]) -> None:
    moved = figures["bytes"]
    metric = f"{what} MB/s"
    readings[metric] = moved / figures["seconds"] / 1e6
    readings[cores(metric)] = figures["cpu_s"] / figures["seconds"]
    readings[f"{what} CPU s/GB"] = figures["cpu_s"] / (moved / GB)
