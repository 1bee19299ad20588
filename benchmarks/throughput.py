"""Promise: at least 1.2 times Kafka's throughput, for at most two thirds of its CPU per GB.

Each shape is filled by the load driver and read back by it, by librdkafka and by Kafka's Java
consumer; then librdkafka and Kafka's own perf tool produce. All read from the page cache, as
consumers that keep up do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from benchmarks import java
from benchmarks.contenders import Contender
from benchmarks.scenario import DEFAULT, KAFKA, OTTLA, Readings, Scenario, cores

GB: Final = 1e9
JAVA_SHARE: Final = 4  # Kafka's tools are slow clients; they move a quarter
CONNECTIONS: Final = 4


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
        many = "partition" if self.partitions == 1 else "partitions"
        return f"{size}, {self.partitions} {many}, acks={'all' if self.acks < 0 else self.acks}"


def scenarios(full: bool) -> Iterator[Scenario]:
    shapes = [Shape(size, count, 1) for size in (1000, 100) for count in (1, 12, 200)]
    everywhere = [Shape(size, count, -1) for size in (1000, 100) for count in (1, 12, 200)]
    shapes += everywhere if full else [Shape(1000, 12, -1), Shape(100, 12, -1)]
    if full:
        shapes += [Shape(1000, 1000, 1)]
    for shape in shapes:
        yield _scenario(shape, with_java=full or shape.partitions == 12)
    yield _in_a_group(Shape(1000, 12, 1))


def _scenario(shape: Shape, *, with_java: bool) -> Scenario:
    def measure(contender: Contender) -> Readings:
        readings: dict[str, float] = {}
        with contender.topic(shape.partitions) as topic:
            _fill_and_read(contender, topic, shape, readings)
            if with_java and shape.acks == 1:
                consumed = java.Load(contender, topic, shape.partitions, shape.size).consume()
                _note(readings, "Java consume", consumed)
        with contender.topic(shape.partitions) as topic:
            load = {"topic": topic, "bytes": shape.volume, **shape._asdict()}
            _note(readings, "librdkafka produce", contender.drive("rdkafka", do="produce", **load))
        if with_java:
            with contender.topic(shape.partitions) as topic:
                load_of_java = java.Load(contender, topic, shape.partitions, shape.size)
                produced = load_of_java.produce(_java_count(shape), shape.acks)
                _note(readings, "kafka-producer-perf-test", produced)
        return readings

    # acks=1 is never flushed before its reply: both of Ottla's policies are one there.
    contenders = (KAFKA, OTTLA) if shape.acks == 1 else (KAFKA, OTTLA, DEFAULT)
    return Scenario(str(shape), measure, contenders)


def _in_a_group(shape: Shape) -> Scenario:
    """kafka-consumer-perf-test, where the broker has groups for it to join."""

    def measure(contender: Contender) -> Readings:
        readings: dict[str, float] = {}
        if java.offers_groups(contender.bootstrap):
            with contender.topic(shape.partitions) as topic:
                load = {"topic": topic, "connections": CONNECTIONS, **shape._asdict()}
                wrote = contender.drive("raw", do="produce", bytes=shape.volume, **load)
                load_of_java = java.Load(contender, topic, shape.partitions, shape.size)
                read = load_of_java.consume_in_group(int(wrote["records"]))
                _note(readings, "kafka-consumer-perf-test", read)
        return readings

    return Scenario(f"{shape}, in a group", measure)


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


def _java_count(shape: Shape) -> int:
    return shape.volume // shape.size // JAVA_SHARE


def _note(readings: dict[str, float], what: str, figures: dict[str, float]) -> None:
    moved = figures["bytes"]
    metric = f"{what} MB/s"
    readings[metric] = moved / figures["seconds"] / 1e6
    readings[cores(metric)] = figures["cpu_s"] / figures["seconds"]
    readings[f"{what} CPU s/GB"] = figures["cpu_s"] / (moved / GB)
