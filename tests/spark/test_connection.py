"""A client on a thread, and the one a process keeps."""

from __future__ import annotations

import pytest

from ottla.client.admin.session import Session
from ottla.config.client import ClientConfig, ConsumerConfig
from ottla.spark.connection import MAX_KEPT, Connection, shared_connection, shared_producer
from ottla.testing import Broker


async def brokers(session: Session) -> list[int]:
    return await session.brokers()


def test_a_cluster_is_asked_from_a_thread_that_waits(broker: Broker) -> None:
    config = ClientConfig.from_options({"bootstrap_servers": broker.bootstrap_servers})
    with Connection(config) as connection:
        assert connection.ask(brokers) == [0]
        assert connection.run(connection.session.brokers()) == [0]
        assert connection.submit(connection.session.brokers()).result(30) == [0]


def test_a_process_keeps_one_connection_for_the_same_settings(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    first = shared_connection(ConsumerConfig, settings)
    assert shared_connection(ConsumerConfig, dict(settings)) is first
    assert shared_connection(ClientConfig, settings) is not first
    assert first.ask(brokers) == [0]


def test_only_so_many_are_kept_and_the_one_used_least_lately_goes(broker: Broker) -> None:
    def settings(at: int) -> dict[str, str]:
        return {"bootstrap.servers": broker.bootstrap_servers, "client.id": str(at)}

    first, second = (shared_connection(ClientConfig, settings(at)) for at in (0, 1))
    for at in range(2, MAX_KEPT):
        shared_connection(ClientConfig, settings(at))
    assert shared_connection(ClientConfig, settings(0)) is first  # used again
    shared_connection(ClientConfig, settings(MAX_KEPT))
    assert shared_connection(ClientConfig, settings(0)) is first
    assert shared_connection(ClientConfig, settings(1)) is not second


def test_the_timeouts_a_user_gave_hold_for_every_question() -> None:
    config = ConsumerConfig.from_options({"request_timeout_ms": 777})
    assert Connection(config).session.timeout_ms == 777


def test_a_process_keeps_a_producer_unless_it_failed(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    with shared_producer(settings) as first:
        first.send("kept", b"x").result(30)
    with pytest.raises(ZeroDivisionError), shared_producer(settings) as again:
        assert again is first
        raise ZeroDivisionError
    with shared_producer(settings) as another:
        assert another is not first
    with shared_producer({**settings, "linger.ms": "1"}) as other:
        other.send("kept", b"y").result(30)
    with shared_producer(settings) as third:
        assert third is not another  # one at a time is kept
