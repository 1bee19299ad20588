"""Every step of a query's sink and source, begun while no broker answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.aio import Producer
from ottla.config.client import ConsumerConfig
from ottla.model.ids import TopicPartition
from ottla.spark import exactly_once, partition_offsets
from ottla.spark.abandoned_transactions import end_what_jobs_left
from ottla.spark.commit_decisions import Entry, Sink
from ottla.spark.commit_log import StoredCommitLog
from ottla.spark.connection import Connection
from ottla.spark.exactly_once import NoStepListener
from ottla.spark.options import stream_source
from tests.spark.restarting_broker import DEADLINE_S, RestartingBroker
from tools import nodes

Step = Callable[[Connection, StoredCommitLog], Coroutine[Any, Any, object]]
TP = TopicPartition("in", 0)


async def _prepares(connection: Connection, ledger: StoredCommitLog) -> object:
    async with Producer(
        config=ledger.client,
        transactional_id=ledger.sink.query,
        transaction_two_phase_commit_enable=True,
    ) as producer:
        await producer.init_transactions(keep_prepared=True)
        producer.begin()
        await (await producer.send("in", b"x"))
        return await producer.prepare_transaction()


async def _looks_for_partitions(connection: Connection, ledger: StoredCommitLog) -> object:
    given = {"kafka.bootstrap.servers": ledger.client["bootstrap.servers"], "subscribe": "in"}
    found = await partition_offsets.partitions(
        connection.session, stream_source(given).subscription
    )
    assert found == [TP]
    return found


STEPS: dict[str, Step] = {
    "read": lambda _, ledger: ledger.read(),
    "take over": lambda _, ledger: exactly_once.take_over(ledger, "b"),
    "decide": lambda _, ledger: exactly_once.decide(ledger, "a", 0, [], NoStepListener()),
    "give up": lambda _, ledger: exactly_once.give_up(ledger, "a", 0, []),
    "end": lambda _, ledger: exactly_once.end(ledger),
    "open transactions": lambda _, ledger: ledger.open_transactions(),
    "end what jobs left": lambda link, ledger: end_what_jobs_left(link, ledger.client),
    "prepare": _prepares,
    "partitions": _looks_for_partitions,
}


CASES = [(step, known) for step in STEPS for known in (False, True)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> RestartingBroker:
    made = RestartingBroker(tmp_path_factory.mktemp("restarting"))
    with made.up(), Admin(bootstrap_servers=made.servers) as admin:
        admin.create_topics([NewTopic("in", 1)]).all()
    return made


@pytest.fixture(scope="module")
def outcomes(cluster: RestartingBroker) -> Iterator[dict[tuple[str, bool], Future[Any]]]:
    """Every step, all of them begun in one absence of the broker.

    Each has a connection of its own: one that knows the cluster, or one that has yet to meet it.
    """
    config = ConsumerConfig.from_options({}, cluster.client)
    with ExitStack() as stack:
        links = {case: stack.enter_context(Connection(config)) for case in CASES}
        ledgers = {
            (step, known): StoredCommitLog(Sink(f"{step}-{known}"), link, cluster.client)
            for (step, known), link in links.items()
        }
        with cluster.up(), Connection(config) as other:
            for (_, known), ledger in ledgers.items():
                asked = ledger if known else replace(ledger, connection=other)
                assert asked.connection.run(exactly_once.take_over(asked, "a")) == Entry("a", 1)
        doing = {
            case: link.submit(STEPS[case[0]](link, ledgers[case])) for case, link in links.items()
        }
        cluster.hang_up_on(list(doing.values()))
        with cluster.up():
            wait(doing.values(), DEADLINE_S)
            yield doing


@pytest.mark.parametrize(("step", "known"), CASES)
def test_a_step_begun_without_a_broker_is_done_when_it_is_back(
    outcomes: dict[tuple[str, bool], Future[Any]], step: str, known: bool
) -> None:
    outcomes[step, known].result(0)


def test_a_broker_that_does_not_come_back_is_given_up_within_the_bound() -> None:
    nobody = {"bootstrap.servers": f"127.0.0.1:{nodes.free_ports(1)[0]}"}
    config = ConsumerConfig.from_options({}, {**nobody, "default.api.timeout.ms": "500"})
    with Connection(config) as connection:
        ledger = StoredCommitLog(Sink("never"), connection, nobody)
        with pytest.raises(TimeoutError, match="timed out after 500 ms; last error: no metadata"):
            connection.run(ledger.read())
