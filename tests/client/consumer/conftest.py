"""One broker for all tests that want a real one, and a hand that fills topics."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

from ottla.testing import Broker

WAIT_S: Final = 30.0
Filled: TypeAlias = Callable[..., str]


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def filled(bootstrap: str) -> Filled:
    """A new topic with records in turn in its partitions, each with its number as value."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 2})
    numbers = itertools.count(1)

    def fill(partitions: int = 1, records: int = 0) -> str:
        name = f"topic-{next(numbers)}"
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(WAIT_S)
        for number in range(records):
            producer.produce(name, str(number), f"k{number}", partition=number % partitions)
        assert producer.flush(WAIT_S) == 0
        return name

    return fill
