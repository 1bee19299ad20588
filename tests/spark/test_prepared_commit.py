"""Committing what another process has prepared, whatever has become of its name since."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.config.client import ClientConfig
from ottla.spark.connection import Connection
from ottla.spark.prepared_commit import end_prepared
from ottla.testing import Broker
from tests.spark.committed_reader import committed_values
from tests.spark.prepared_task import prepared


@pytest.fixture
def connection(broker: Broker) -> Iterator[Connection]:
    servers = broker.bootstrap_servers
    with Connection(ClientConfig.from_options({"bootstrap_servers": servers})) as open:
        yield open


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("ending", 1)]).all()
    return "ending"


def end(connection: Connection, each: PreparedTransaction) -> None:
    connection.run(end_prepared(connection.session, each))


def test_a_prepared_transaction_is_committed_once(
    broker: Broker, connection: Connection, topic: str
) -> None:
    one = prepared(broker.bootstrap_servers, "ending-once", topic, "once")
    end(connection, one)
    end(connection, one)  # said twice is no mistake
    assert committed_values(broker.bootstrap_servers, topic).count(b"once") == 1


def test_a_prepared_transaction_survives_a_late_attempt_that_asks_for_its_name(
    broker: Broker, connection: Connection, topic: str
) -> None:
    one = prepared(broker.bootstrap_servers, "ending-late", topic, "kept")
    with Producer(
        bootstrap_servers=broker.bootstrap_servers,
        transactional_id="ending-late",
        transaction_two_phase_commit_enable=True,
    ) as late:
        assert late.init_transactions(keep_prepared=True) == one
    end(connection, one)
    assert committed_values(broker.bootstrap_servers, topic).count(b"kept") == 1
    end(connection, one)  # the name has a newer identity now, and nothing open


def test_a_later_transaction_under_the_name_is_left_alone(
    broker: Broker, connection: Connection, topic: str
) -> None:
    first = prepared(broker.bootstrap_servers, "ending-again", topic, "first")
    end(connection, first)
    prepared(broker.bootstrap_servers, "ending-again", topic, "second")
    end(connection, first)
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        assert [
            each.id
            for each in admin.list_transactions(states=["Ongoing"])
            if each.id == "ending-again"
        ]
        admin.fence_producers(["ending-again"]).all()
    assert b"second" not in committed_values(broker.bootstrap_servers, topic)


def test_a_name_that_has_been_forgotten_has_nothing_open(connection: Connection) -> None:
    stranger = PreparedTransaction("ending-stranger", 77, 0)
    end(connection, stranger)  # asking for it makes it known, with nothing open
