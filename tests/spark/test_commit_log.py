"""The ledger in a real cluster, and ending other producers' transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.errors import Fenced
from ottla.client.producer.sync import Producer
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.config.client import ClientConfig
from ottla.model.ids import TopicPartition as TP
from ottla.spark import exactly_once
from ottla.spark.commit_decisions import TOPIC, Entry, Sink, Superseded, decided
from ottla.spark.commit_log import StoredCommitLog
from ottla.spark.connection import Connection
from ottla.spark.exactly_once import NoStepListener
from ottla.testing import Broker
from tests.spark.committed_reader import committed_values


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        with Admin(bootstrap_servers=running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("out", 1)]).all()
        yield running


@pytest.fixture
def connection(broker: Broker) -> Iterator[Connection]:
    with Connection(
        ClientConfig.from_options({"bootstrap_servers": broker.bootstrap_servers})
    ) as open:
        yield open


def ledger_of(broker: Broker, connection: Connection, query: str) -> StoredCommitLog:
    return StoredCommitLog(Sink(query), connection, {"bootstrap.servers": broker.bootstrap_servers})


def prepared(broker: Broker, id: str, *values: bytes) -> PreparedTransaction:
    with Producer(
        bootstrap_servers=broker.bootstrap_servers,
        transactional_id=id,
        transaction_two_phase_commit_enable=True,
    ) as producer:
        assert producer.init_transactions(keep_prepared=True) is None
        producer.begin()
        for value in values:
            producer.send("out", value)
        return producer.prepare_transaction()


def test_an_entry_is_found_again(broker: Broker, connection: Connection) -> None:
    ledger = ledger_of(broker, connection, "found")
    assert connection.run(ledger.read()) is None
    first = connection.run(exactly_once.take_over(ledger, "a"))
    assert first == Entry("a", 1)
    assert connection.run(ledger.read()) == first
    assert connection.run(exactly_once.take_over(ledger, "b")) == Entry("b", 2, past=("a",))


def test_an_entry_is_found_without_its_pointer(broker: Broker, connection: Connection) -> None:
    others = [ledger_of(broker, connection, f"other {at}") for at in range(5)]
    ledger = ledger_of(broker, connection, "searched")
    for each in (*others, ledger, *others):
        connection.run(exactly_once.take_over(each, "a"))
    connection.run(exactly_once.take_over(ledger, "b"))
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        every = [TP(TOPIC, at) for at in range(16)]
        admin.delete_group_offsets(ledger.sink.group, every)
    assert connection.run(ledger.read()) == Entry("b", 2, past=("a",))


def test_a_decision_makes_every_listed_transaction_visible(
    broker: Broker, connection: Connection
) -> None:
    ledger = ledger_of(broker, connection, "visible")
    entry = connection.run(exactly_once.take_over(ledger, "a"))
    listed = [
        prepared(broker, ledger.sink.transactional_id(entry.run_epoch, task, "0.0"), value)
        for task, value in enumerate((b"visible 1", b"visible 2"))
    ]
    stray = prepared(broker, ledger.sink.transactional_id(entry.run_epoch, 0, "0.1"), b"stray")
    assert connection.run(ledger.open_transactions()) == sorted(
        each.transactional_id for each in (*listed, stray)
    )
    connection.run(exactly_once.decide(ledger, "a", 0, listed, NoStepListener()))
    found = committed_values(broker.bootstrap_servers, "out")
    assert {b"visible 1", b"visible 2"} <= set(found)
    assert b"stray" not in found
    assert connection.run(ledger.open_transactions()) == []


def test_whoever_holds_the_ledger_last_is_the_only_one_who_writes(
    broker: Broker, connection: Connection
) -> None:
    ledger = ledger_of(broker, connection, "fenced")
    entry = connection.run(exactly_once.take_over(ledger, "old"))

    async def go() -> None:
        async with ledger.acquire() as held:
            async with ledger.acquire() as newer:
                await newer.write(Entry("new", 2, past=("old",)))
            await held.write(decided(ledger.sink, entry, 0, []))

    with pytest.raises(Fenced):
        connection.run(go())
    with pytest.raises(Superseded):
        connection.run(exactly_once.decide(ledger, "old", 0, [], NoStepListener()))


def test_what_an_abandoned_query_left_is_ended(broker: Broker, connection: Connection) -> None:
    ledger = ledger_of(broker, connection, "abandoned")
    entry = connection.run(exactly_once.take_over(ledger, "a"))
    left = prepared(broker, ledger.sink.transactional_id(entry.run_epoch, 0, "0.0"), b"left")
    connection.run(exactly_once.end(ledger))
    assert connection.run(ledger.open_transactions()) == []
    assert b"left" not in committed_values(broker.bootstrap_servers, "out")
    assert left.transactional_id == "abandoned-0-1-0-0.0"


def test_an_entry_can_be_forgotten(broker: Broker, connection: Connection) -> None:
    ledger = ledger_of(broker, connection, "forgotten")
    connection.run(exactly_once.take_over(ledger, "a"))

    async def forget() -> None:
        async with ledger.acquire() as held:
            await held.write(None)

    connection.run(forget())
    assert connection.run(ledger.read()) is None
