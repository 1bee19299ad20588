"""A broker and a gateway for all tests that need sockets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib import import_module

import pytest

import ottla
from ottla.testing import Broker
from tests.gateway.running_gateway import Client, running_gateway

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def gateway_broker() -> Iterator[Broker]:
    # Python 3.11 may fail where two threads parse source at a time, as the broker's and the
    # consumer's would if both loaded the kernels.
    import_module("ottla.protocol.records.columns")
    with Broker(
        {"offsets.topic.num.partitions": "1", "auto.create.topics.enable": "false"}
    ) as broker:
        yield broker


@pytest.fixture(scope="module")
def client(gateway_broker: Broker) -> Iterator[Client]:
    with running_gateway(gateway_broker.bootstrap_servers) as client:
        yield client


@pytest.fixture(scope="module")
def admin(gateway_broker: Broker) -> Iterator[ottla.Admin]:
    with ottla.Admin(bootstrap_servers=gateway_broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: ottla.Admin) -> str:
    """A new topic with two partitions."""
    name = f"orders-{next(_numbers)}"
    admin.create_topic(name, partitions=2)
    return name


@pytest.fixture
def group() -> str:
    """A name that no other test uses."""
    return f"group-{next(_numbers)}"
