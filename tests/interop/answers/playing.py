"""All scenarios, played to an Apache Kafka and to an Ottla.

Owns: the broker processes, and their settings. Never: judges an exchange.

The newest Apache Kafka is enough for what clients ask: every version that we offer it offers, too,
but for one that it hides. Should a later release drop some, a test says so. What a controller tells
brokers with ZooKeeper is played to an Apache Kafka 3.9.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.interop.answers import (
    of_brokers,
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
from tests.store.zookeeper_server import zookeeper_server
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

KAFKA_39: Final = "server-3.9"
SCENARIOS_39: Final[Mapping[str, Scenario]] = {
    scenario.name: scenario for scenario in (*of_brokers.OF_A_CLIENT, *of_brokers.OF_A_BROKER)
}
# Who comes without a login is a broker; the others have none of its rights.
BOTH_39: Final = {
    "broker.id": str(of_brokers.BROKER),
    "inter.broker.listener.name": "PLAINTEXT",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'user_{of_brokers.USER}="{of_brokers.PASSWORD}";'
    ),
    # Nobody's session ends while the machine is busy: a new one means new epochs.
    "zookeeper.session.timeout.ms": "60000",
    "zookeeper.connection.timeout.ms": "60000",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
}
LONG_SESSIONS: Final = "maxSessionTimeout=60000\n"
REGISTERED_S: Final = 60.0
REPLY_S: Final = 30.0
PAUSE_S: Final = 0.1


class Answers:
    """What became of each scenario; each is played once, when it is first asked for."""

    def __init__(self, pairs: Sequence[tuple[Pair, Sequence[Scenario]]]) -> None:
        self._scenarios = [(scenario, pair) for pair, some in pairs for scenario in some]
        self._pairs = {scenario.name: pair for scenario, pair in self._scenarios}
        self._played: dict[str, list[Exchange]] = {}

    def of(self, scenario: Scenario) -> list[Exchange]:
        if scenario.name not in self._played:
            self._played[scenario.name] = list(self._pairs[scenario.name].play(scenario))
        return self._played[scenario.name]

    def everything(self) -> list[Exchange]:
        return [one for scenario, _ in self._scenarios for one in self.of(scenario)]


@contextmanager
def playing(folder: Path) -> Iterator[Answers]:
    """The newest Apache Kafka and Ottla, for what clients ask."""
    starts = (
        lambda: nodes.start_kafka(folder / "kafka", {**BOTH, **THEIRS}, options=nodes.QUICK_JVM),
        lambda: nodes.start_ottla(folder / "ottla", {**BOTH, **OURS}),
    )
    with _started(starts) as both, ThreadPoolExecutor() as pool:
        kafka, ours = (Side(node.name, node.bootstrap) for node in both)
        list(pool.map(warm, (kafka, ours)))
        yield Answers([(Pair(kafka, ours, _excused), list(SCENARIOS.values()))])


@contextmanager
def playing_39(folder: Path) -> Iterator[Answers]:
    """Apache Kafka 3.9 and Ottla, for what brokers say to each other; everything is played.

    Each has its own part of one ZooKeeper, and an authorizer.
    """
    store = folder / "zookeeper"
    store.mkdir()
    with zookeeper_server(store, LONG_SESSIONS) as zookeeper:
        zookeeper.wait_until_it_serves()
        port, *others = nodes.free_ports(3)
        secured = [f"127.0.0.1:{other}" for other in others]
        stores = [f"{zookeeper.address}/{name}" for name in ("kafka", "ottla")]
        starts = (
            lambda: _start_kafka_39(folder / "kafka", stores[0], port, secured[0]),
            lambda: _start_ottla_39(folder / "ottla", stores[1], secured[1]),
        )
        with _started(starts) as both:
            brokers = _pair_39(*(node.bootstrap for node in both))
            for side in brokers.both:
                _until_registered(side)
            clients = _pair_39(*secured)
            answers = Answers(
                [(clients, of_brokers.OF_A_CLIENT), (brokers, of_brokers.OF_A_BROKER)]
            )
            answers.everything()  # the last scenario ends what the broker can do
            yield answers


def _pair_39(theirs: str, ours: str) -> Pair:
    kafka, ottla = Side("kafka", theirs, REPLY_S), Side("ottla", ours, REPLY_S)
    return Pair(kafka, ottla, _excused, REPLY_S)


def _start_kafka_39(folder: Path, store: str, port: int, secured: str) -> nodes.Node:
    folder.mkdir()
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://{secured}"
    own = {
        "listeners": listeners,
        "log.dirs": str(folder / "data"),
        "zookeeper.connect": store,
    }
    values = {**nodes.RECOMMENDED, **BOTH_39, **own}
    properties = folder / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return nodes.run_kafka(folder, properties, port, kind=KAFKA_39, options=nodes.QUICK_JVM)


def _start_ottla_39(folder: Path, store: str, secured: str) -> nodes.Node:
    settings = {**BOTH_39, "zookeeper.connect": store}
    return nodes.start_ottla(folder, settings, listeners=[f"SASL_PLAINTEXT://{secured}"])


def _until_registered(side: Side) -> None:
    """Until the broker knows its controller, which is itself: it answers before that."""
    side.begin(0)
    deadline = time.monotonic() + REGISTERED_S
    while True:
        known = side.ask("first", "Metadata", 12, {"topics": []}).entity
        if known is not None and known.brokers and known.controller_id == of_brokers.BROKER:
            break
        assert time.monotonic() < deadline, f"{side.name}: no controller: {known}"
        time.sleep(PAUSE_S)
    side.end()


@contextmanager
def _started(starts: Sequence[Callable[[], nodes.Node]]) -> Iterator[list[nodes.Node]]:
    """Brokers, started at the same time."""
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        started = [pool.submit(start) for start in starts]
        for future in started:
            stack.callback(_stop, future)
        yield [future.result() for future in started]


def _stop(future: Future[nodes.Node]) -> None:
    if future.exception() is None:
        nodes.stop(future.result())


def _excused(scenario: str, api: str, found: Difference) -> bool:
    return meant(scenario, api, found) is not None
