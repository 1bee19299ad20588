"""A broker for all tests of the admin, and an admin of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import ottla
from ottla.testing import Broker

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def admin_broker() -> Iterator[Broker]:
    settings = {
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        # Lets a test leave a transaction in a partition that no coordinator knows of.
        "transaction.partition.verification.enable": "false",
    }
    with Broker(settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def admin(admin_broker: Broker) -> Iterator[ottla.Admin]:
    with ottla.Admin(bootstrap_servers=admin_broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: ottla.Admin) -> str:
    """A new topic with two partitions."""
    name = f"topic-{next(_numbers)}"
    admin.create_topic(name, partitions=2)
    return name


@pytest.fixture
def name() -> str:
    """A name that nothing has yet."""
    return f"name-{next(_numbers)}"
