"""Promise: at a fixed rate, the p99 from producer to consumer is at most half of Kafka's."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.contenders import Contender
from benchmarks.scenario import DEFAULT, KAFKA, OTTLA, Readings, Scenario


def scenarios(full: bool) -> Iterator[Scenario]:
    yield _scenario(1000, acks=1, seconds=10 if full else 5)
    yield _scenario(1000, acks=-1, seconds=10 if full else 5)
    if full:
        yield _scenario(5000, acks=1, seconds=10)


def _scenario(rate: int, *, acks: int, seconds: int) -> Scenario:
    def measure(contender: Contender) -> Readings:
        with contender.topic(12) as topic:
            load = {"topic": topic, "size": 1000, "partitions": 12, "acks": acks}
            taken = contender.drive("rdkafka", do="end to end", rate=rate, seconds=seconds, **load)
        return {f"end to end {name}": value for name, value in taken.items() if name != "cpu_s"}

    contenders = (KAFKA, OTTLA) if acks == 1 else (KAFKA, OTTLA, DEFAULT)
    name = f"{rate} records of 1 KB a second, 12 partitions, acks={'all' if acks < 0 else acks}"
    return Scenario(name, measure, contenders)
