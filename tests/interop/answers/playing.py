"""All scenarios, played to an Apache Kafka and to an Ottla.

Owns: the two broker processes, and their settings. Never: judges an exchange.

The newest Apache Kafka is enough: every version that we offer it offers, too, but for one that it
hides. Should a later release drop some, a test says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.interop.answers import (
    of_cluster,
    of_consumer_groups,
    of_groups,
    of_records,
    of_security,
    of_settings,
    of_topics,
    of_transactions,
)
from tests.interop.answers.compare import Difference
from tests.interop.answers.differences import meant
from tests.interop.answers.running import Exchange, Pair, warm
from tests.interop.answers.scenario import Scenario
from tests.interop.answers.side import Side
from tools import nodes

AREAS: Final = (
    of_cluster,
    of_topics,
    of_records,
    of_groups,
    of_consumer_groups,
    of_transactions,
    of_settings,
    of_security,
)
SCENARIOS: Final[Mapping[str, Scenario]] = {
    scenario.name: scenario for area in AREAS for scenario in area.SCENARIOS
}
assert len(SCENARIOS) == sum(len(area.SCENARIOS) for area in AREAS), "a name is used twice"
BOTH: Final = {
    "log.retention.ms": "-1",  # the records of scenarios are old
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
}
# Without these it hands out assignments a second late.
THEIRS: Final = {
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
OURS: Final = {"broker.id": "1"}


class Answers:
    """What became of each scenario; each is played once, when it is first asked for."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._played: dict[str, list[Exchange]] = {}

    def of(self, scenario: Scenario) -> list[Exchange]:
        if scenario.name not in self._played:
            self._played[scenario.name] = list(self._pair.play(scenario))
        return self._played[scenario.name]

    def everything(self) -> list[Exchange]:
        return [one for scenario in SCENARIOS.values() for one in self.of(scenario)]


@contextmanager
def playing(folder: Path) -> Iterator[Answers]:
    """Both brokers, started at the same time."""
    starts = (
        lambda: nodes.start_kafka(folder / "kafka", {**BOTH, **THEIRS}),
        lambda: nodes.start_ottla(folder / "ottla", {**BOTH, **OURS}),
    )
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        started = [pool.submit(start) for start in starts]
        for future in started:
            stack.callback(_stop, future)
        kafka, ours = (Side(one.result().name, one.result().bootstrap) for one in started)
        list(pool.map(warm, (kafka, ours)))
        yield Answers(Pair(kafka, ours, _excused))


def _stop(future: Future[nodes.Node]) -> None:
    if future.exception() is None:
        nodes.stop(future.result())


def _excused(scenario: str, api: str, found: Difference) -> bool:
    return meant(scenario, api, found) is not None
