"""Transactions that are open, or decided and stuck, while a test looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import ottla
from ottla.client.admin import Resource
from ottla.testing import Broker

Begin = Callable[..., ottla.Producer]


@pytest.fixture
def begin(cli_broker: Broker, topic: str) -> Iterator[Begin]:
    """Begins a transaction of this id with one record in partition 0."""
    opened = []

    def begin(id: str, *, two_phase: bool = False) -> ottla.Producer:
        producer = ottla.Producer(
            bootstrap_servers=cli_broker.bootstrap_servers,
            transactional_id=id,
            transaction_two_phase_commit_enable=two_phase,
        )
        opened.append(producer)
        producer.init_transactions()
        producer.begin()
        producer.send(topic, b"open", partition=0).result(20)
        return producer

    yield begin
    for producer in opened:
        producer.close(0)


@pytest.fixture
def stuck(admin: ottla.Admin, topic: str, begin: Begin) -> Iterator[ottla.Producer]:
    """A committed transaction whose marker its partition refuses: no batch is small enough."""
    producer = begin("stuck")
    admin.alter_configs({Resource.topic(topic): {"max.message.bytes": "1"}}).all()
    producer.commit()
    yield producer
    allow_markers(admin, topic)


def allow_markers(admin: ottla.Admin, topic: str) -> None:
    admin.alter_configs({Resource.topic(topic): {}}).all()
