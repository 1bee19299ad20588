"""A transaction that is open while a test looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import ottla
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
