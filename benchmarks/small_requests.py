"""Promise: 1.2 times Kafka's small requests a second, and the p99 of one at most half."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.contenders import Contender
from benchmarks.scenario import DEFAULT, KAFKA, OTTLA, Readings, Scenario, cores

SIZE: Final = 100
CONNECTIONS: Final = 10
IN_FLIGHT: Final = 5


def scenarios(full: bool) -> Iterator[Scenario]:
    yield _scenario(acks=1, seconds=5 if full else 3, contenders=(KAFKA, OTTLA))
    if full:
        yield _scenario(acks=-1, seconds=5, contenders=(KAFKA, OTTLA, DEFAULT))


def _scenario(*, acks: int, seconds: int, contenders: tuple[str, ...]) -> Scenario:
    def measure(contender: Contender) -> Readings:
        with contender.topic(CONNECTIONS) as topic:
            load = {"topic": topic, "size": SIZE, "acks": acks, "partitions": CONNECTIONS}
            flood = {"connections": CONNECTIONS, "in_flight": IN_FLIGHT, "seconds": seconds}
            many = contender.drive("raw", do="small", **load, **flood)
            one = contender.drive("raw", do="one at a time", seconds=2, **load)
        metric = "requests/s"
        return {
            metric: many["requests"] / many["seconds"],
            cores(metric): many["cpu_s"] / many["seconds"],
            "one request p50 ms": one["p50 ms"],
            "one request p99 ms": one["p99 ms"],
        }

    name = f"one {SIZE} B record a request, {CONNECTIONS} connections, {IN_FLIGHT} in flight"
    return Scenario(f"{name}, acks={'all' if acks < 0 else acks}", measure, contenders)
