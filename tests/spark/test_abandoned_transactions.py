"""A query that never comes back, ended by its name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.admin.transactions import fence_producers, list_transactions
from ottla.client.producer.sync import Producer
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.config.client import ClientConfig
from ottla.spark import exactly_once
from ottla.spark.abandoned_transactions import (
    Ended,
    end_query,
    end_what_jobs_left,
    open_of,
    sink_of,
)
from ottla.spark.commit_decisions import Sink, decided, job_name, job_of
from ottla.spark.commit_log import StoredCommitLog
from ottla.spark.connection import Connection
from ottla.spark.exactly_once import NoStepListener
from ottla.testing import Broker
from tests.spark.committed_reader import committed_values
from tests.spark.prepared_task import prepared


@pytest.fixture(scope="module")
def connection(broker: Broker) -> Iterator[Connection]:
    servers = broker.bootstrap_servers
    with Connection(ClientConfig.from_options({"bootstrap_servers": servers})) as open:
        yield open


class Query:
    """A query as its tasks and its driver would have left it."""

    def __init__(self, connection: Connection, servers: str, name: str, sink: str = "0") -> None:
        self.connection = connection
        self.servers = servers
        self.client = {"bootstrap.servers": servers}
        self.ledger = StoredCommitLog(Sink(name, sink), connection, self.client)
        self.topic = f"of-{name}"
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(self.topic, 1)])
        self.entry = connection.run(exactly_once.take_over(self.ledger, "run"))

    def prepare(self, value: str, task: int = 0) -> PreparedTransaction:
        id = self.ledger.sink.transactional_id(self.entry.run_epoch, task, "0")
        return prepared(self.servers, id, self.topic, value)

    def end(self) -> Ended:
        return self.connection.run(end_query(self.connection, self.client, self.ledger.sink.query))

    def seen(self) -> list[bytes | None]:
        return committed_values(self.servers, self.topic)


def test_what_was_never_decided_is_aborted_and_readers_go_on(
    broker: Broker, connection: Connection
) -> None:
    query = Query(connection, broker.bootstrap_servers, "aa-11")
    done = query.prepare("done")
    connection.run(exactly_once.decide(query.ledger, "run", 0, [done], NoStepListener()))
    query.prepare("left")  # under the very name that was committed before
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send(query.topic, b"after")
    assert query.seen() == [b"done"]
    assert query.end() == Ended((), ("aa-11-0-1-0-0",))
    assert query.seen() == [b"done", b"after"]


def test_what_was_decided_is_committed(broker: Broker, connection: Connection) -> None:
    query = Query(connection, broker.bootstrap_servers, "bb-22")
    id = query.ledger.sink.transactional_id(query.entry.run_epoch, 1, "0")
    one = query.prepare("decided", task=1)
    query.prepare("not decided")

    async def write() -> None:  # and die
        async with query.ledger.acquire() as held:
            await held.write(decided(query.ledger.sink, query.entry, 4, [one]))

    connection.run(write())
    assert query.end() == Ended((id,), ("bb-22-0-1-0-0",))
    assert b"decided" in query.seen()
    assert b"not decided" not in query.seen()


def test_every_sink_of_a_query_is_ended_and_no_other_query(
    broker: Broker, connection: Connection
) -> None:
    servers = broker.bootstrap_servers
    first, second = (Query(connection, servers, "cc-33", name) for name in ("0", "late"))
    other = Query(connection, servers, "cc-33-4")
    for each in (first, second, other):
        each.prepare("x")
    assert first.end() == Ended((), ("cc-33-0-1-0-0", "cc-33-late-1-0-0"))
    assert [each[0] for each in connection.run(open_of(connection, "cc-33-4"))] == [
        "cc-33-4-0-1-0-0"
    ]
    other.end()


def test_a_query_whose_ledger_is_gone_is_ended_all_the_same(
    broker: Broker, connection: Connection
) -> None:
    prepared(broker.bootstrap_servers, "dd-44-0-9-0-0", "of-dd-44", "x")
    client = {"bootstrap.servers": broker.bootstrap_servers}
    ended = connection.run(end_query(connection, client, "dd-44"))
    assert ended == Ended((), ("dd-44-0-9-0-0",))
    assert connection.run(open_of(connection, "dd-44")) == []


def test_a_query_without_anything_open_is_left_as_it_is(
    broker: Broker, connection: Connection
) -> None:
    client = {"bootstrap.servers": broker.bootstrap_servers}
    assert connection.run(end_query(connection, client, "nobody")) == Ended((), ())


def test_a_batch_write_ends_what_failed_ones_left_and_nobody_elses(
    broker: Broker, connection: Connection
) -> None:
    servers = broker.bootstrap_servers
    failed, at_work = (Query(connection, servers, name) for name in ("batch-71", "batch-72"))
    connection.run(exactly_once.end(failed.ledger))
    for each in (failed, at_work):
        each.prepare("x")  # the failed one's too late, by a task that was killed at once
    prepared(servers, "batch-of-shoes", "of-others", "x")
    connection.run(end_what_jobs_left(connection, failed.client))
    assert connection.run(open_of(connection, "batch-71")) == []
    assert [each[0] for each in connection.run(open_of(connection, "batch-72"))] == [
        "batch-72-0-1-0-0"
    ]
    others = connection.run(list_transactions(connection.session, pattern="batch-of-.*"))
    assert [each.state for each in others] == ["Ongoing"]
    at_work.end()
    connection.run(fence_producers(connection.session, ["batch-of-shoes"])).all()


def test_names_are_told_apart() -> None:
    assert job_of(Sink(job_name(7)).transactional_id(1, 0, "0")) == "batch-7"
    assert job_of("batch-7") is None
    assert job_of("batch-x-0-1-2-0") is None
    assert job_of("7-0-1-2-0") is None
    assert sink_of("q", "q-0-1-2-0") == Sink("q", "0")
    assert sink_of("q", "q-0") is None
    assert sink_of("q", "p-0-1-2-0") is None
