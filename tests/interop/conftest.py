"""One broker for the whole run, and the clients that judge it.

`OTTLA_INTEROP_TARGET=kafka` puts Apache Kafka in Ottla's place.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import pytest

from tests.interop.aiokafka_client import AiokafkaClient
from tests.interop.client import Client
from tests.interop.confluent_client import ConfluentClient
from tests.interop.consumer_cluster import Site, numbers
from tests.interop.java_client import Java4Client, Java39Client
from tests.interop.kafka_python_client import KafkaPythonClient
from tests.interop.kcat_client import KcatClient
from tests.skips import skip_without
from tools import kafka_cache, nodes

MakeTopic = Callable[..., str]
Opened = Callable[[str], Client]

CLIENTS: Final[Mapping[str, type[Client]]] = {
    client.name: client
    for client in (
        ConfluentClient,
        KafkaPythonClient,
        AiokafkaClient,
        KcatClient,
        Java39Client,
        Java4Client,
    )
}


# Both kinds of broker know these. Records stay, however old they say they are.
KEPT: Final = {"log.retention.ms": "-1"}
# Nobody here waits for what only spreads load out.
PROMPT: Final = {
    **KEPT,
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nodes.Node]:
    target = os.environ.get("OTTLA_INTEROP_TARGET", "ottla")
    assert target in ("ottla", "kafka"), f"OTTLA_INTEROP_TARGET={target}"
    folder = tmp_path_factory.mktemp("broker")
    kafka = partial(nodes.kafka, options=nodes.QUICK_JVM)
    with (kafka if target == "kafka" else nodes.ottla)(folder, PROMPT) as node:
        yield node


@pytest.fixture(scope="session")
def bootstrap(broker: nodes.Node) -> str:
    return broker.bootstrap


@pytest.fixture(scope="session", params=["ottla", "kafka"])
def cluster_under_test(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[nodes.Node]:
    """Ottla, then Apache Kafka: what our own clients promise they promise with either."""
    folder = tmp_path_factory.mktemp(request.param)
    settings = {
        **KEPT,
        "group.initial.rebalance.delay.ms": "100",
        "group.min.session.timeout.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "300",
        "group.consumer.heartbeat.interval.ms": "300",
    }
    try:
        node = (
            nodes.kafka(folder, settings, options=nodes.QUICK_JVM)
            if request.param == "kafka"
            else nodes.ottla(folder, settings)
        )
        with node as running:
            yield running
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def site(cluster_under_test: nodes.Node) -> Site:
    """The cluster as the suites of our consumer use it."""
    return Site(cluster_under_test)


@pytest.fixture
def group() -> str:
    """The name of a group that nobody else has."""
    return f"group-{next(numbers)}"


@pytest.fixture(scope="session")
def base_ms() -> int:
    """When the records say they were written: lately, or retention would take them."""
    return int(time.time() * 1000) - 3_600_000


@pytest.fixture(scope="session")
def opened(bootstrap: str) -> Iterator[Opened]:
    """Every client is opened once, in whatever order the tests come."""
    clients: dict[str, Client] = {}

    def get(name: str) -> Client:
        if name not in clients:
            clients[name] = open_client(name, bootstrap)
        return clients[name]

    yield get
    for client in clients.values():
        client.close()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, opened: Opened) -> Client:
    """Each client in turn; it sits out what its own API has no means for."""
    client = opened(request.param)
    reason = client.cannot.get(request.node.originalname)
    if reason is not None:
        pytest.skip(reason)
    return client


@pytest.fixture(scope="session")
def make_topic(opened: Opened) -> MakeTopic:
    """A new topic for clients that shall not, or cannot, create it themselves."""
    admin = opened("confluent-kafka")
    numbers = itertools.count()

    def make(partitions: int = 1, **settings: str) -> str:
        topic = f"topic-{next(numbers)}"
        named = {name.replace("_", "."): value for name, value in settings.items()}
        admin.create_topic(topic, partitions, named)
        return topic

    return make


def open_client(name: str, bootstrap: str) -> Client:
    if name == "kcat" and shutil.which("kcat") is None:
        skip_without("kcat is missing; as root: apt-get install kcat")
    try:
        return CLIENTS[name](bootstrap)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
