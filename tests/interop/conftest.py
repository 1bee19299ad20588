"""One broker for the whole run, and the clients that judge it.

`OTTLA_INTEROP_TARGET=kafka` puts Apache Kafka in Ottla's place.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pytest

from tests.interop.aiokafka_client import AiokafkaClient
from tests.interop.client import Client
from tests.interop.confluent_client import ConfluentClient
from tests.interop.java_client import JavaClient
from tests.interop.kafka_python_client import KafkaPythonClient
from tests.interop.kcat_client import KcatClient
from tools import kafka_cache, nodes

MakeTopic = Callable[..., str]

CLIENTS: Final[Mapping[str, Callable[[str], Client]]] = {
    "confluent-kafka": ConfluentClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
    "kcat": KcatClient,
    "java-3.9": lambda bootstrap: JavaClient("java-3.9", "clients-3.9", bootstrap),
    "java-4": lambda bootstrap: JavaClient("java-4", "clients", bootstrap),
}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nodes.Node]:
    target = os.environ.get("OTTLA_INTEROP_TARGET", "ottla")
    start = {"ottla": nodes.ottla, "kafka": nodes.kafka}[target]
    with start(tmp_path_factory.mktemp("broker")) as node:
        yield node


@pytest.fixture(scope="session")
def bootstrap(broker: nodes.Node) -> str:
    return broker.bootstrap


@pytest.fixture(scope="session")
def base_ms() -> int:
    """When the records say they were written: lately, or retention would take them."""
    return int(time.time() * 1000) - 3_600_000


@pytest.fixture(scope="session", params=CLIENTS)
def any_client(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Client]:
    client = open_client(request.param, bootstrap)
    yield client
    client.close()


@pytest.fixture
def client(request: pytest.FixtureRequest, any_client: Client) -> Client:
    """Each client in turn; it sits out what its own API has no means for."""
    reason = any_client.cannot.get(request.node.originalname)
    if reason is not None:
        pytest.skip(reason)
    return any_client


@pytest.fixture(scope="session")
def make_topic(bootstrap: str) -> MakeTopic:
    """A new topic for clients that shall not, or cannot, create it themselves."""
    admin = ConfluentClient(bootstrap)
    numbers = itertools.count()

    def make(partitions: int = 1, **settings: str) -> str:
        topic = f"topic-{next(numbers)}"
        named = {name.replace("_", "."): value for name, value in settings.items()}
        admin.create_topic(topic, partitions, named)
        return topic

    return make


def open_client(name: str, bootstrap: str) -> Client:
    if name == "kcat" and shutil.which("kcat") is None:
        pytest.skip("kcat is not installed; as root: make setup")
    try:
        return CLIENTS[name](bootstrap)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
