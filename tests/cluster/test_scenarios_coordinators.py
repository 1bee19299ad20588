"""Coordinators of groups and transactions that move or die.

The numbers are those of the table of scenarios in docs/reliability.md.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from ottla.model.errors import ErrorCode
from ottla.testing.history import Poll, Send, check
from tests.bad_input.producers import Who, begun, end, ended, write
from tests.cluster.administration import GROUP, coordinator_of, wait_for_coordinator
from tests.cluster.grouped import members, read_by
from tests.cluster.load import IMPATIENT, SOON, wait_for_progress
from tests.cluster.process import wait_for
from tests.cluster.shared_cluster import SharedCluster
from tests.cluster.three_brokers import ThreeBrokers, name_of
from tests.cluster.transacting import Ground, Topic
from tests.cluster.transaction_readers import Watcher, offset_reader
from tests.raw_requests import Line

# Groups


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.spec("GRP-59", "GRP-75", "GRP-77")
def test_scenario_23_offsets_never_go_back_while_group_coordinators_move(
    shared: SharedCluster,
) -> None:
    topic = Topic("scenario-23", 3)
    groups = ["classic-23", "consumer-23"]
    with shared.healthy() as cluster:
        cluster.create_topic(topic, topic.partitions)
        ground = Ground(cluster.bootstrap)
        workers = members(ground, topic, groups, Random(23))
        watcher = Watcher(ground, (), dict.fromkeys(groups, topic))
        for thread in (*workers, watcher):
            thread.start()
        with cluster.load(topic, topic.partitions, producers=1, settings=IMPATIENT) as load:
            for group in groups * 2:
                wait_for_progress(load, 200)
                coordinator = wait_for_coordinator(cluster, group, GROUP)
                load.fault(f"kill -9 of the coordinator of {group}")
                cluster.kill(coordinator)
                wait_for_coordinator(cluster, group, GROUP, other_than=(coordinator,))
                wait_for_progress(load, 200)
                cluster.start(coordinator)
                cluster.wait_until_all_in_sync()
        for group in groups:
            wait_until_read(ground, group, topic)
        ground.stop.set()
        for thread in (*workers, watcher):
            thread.join(60)
            assert not thread.is_alive(), thread.name
        history = [*cluster.assert_nothing_lost(load), *ground.events]
        assert check(history) == []
        sent = {event.value for event in history if isinstance(event, Send)}
        for group in groups:
            assert sent <= read_by(history, group)
            processes = {e.process for e in history if isinstance(e, Poll) and e.group == group}
            assert len(processes) > 2, "members came and went"


def wait_until_read(ground: Ground, group: str, topic: Topic) -> None:
    """Until the group has committed the end of every partition."""
    reader = offset_reader(ground, group)
    ends = [reader.get_watermark_offsets(one, 30)[1] for one in topic.all()]

    def is_done() -> bool:
        return [one.offset for one in reader.committed(topic.all(), 30)] == ends

    wait_for(is_done, 60, f"{group} to read up to {ends}")
    reader.close()


# Transactions


def transactional_id_of(cluster: ThreeBrokers, leader: int) -> str:
    """An id whose coordinator is not the leader of the data."""

    def found() -> list[str]:
        names = [f"id-{number}" for number in range(20)]
        return [name for name in names if coordinator_of(cluster, name) not in (-1, leader)]

    wait_for(lambda: bool(found()), 30, "a coordinator")
    return found()[0]


def committed(cluster: ThreeBrokers, topic: str, count: int) -> list[str]:
    """The values that a reader of committed data gets, `count` of them at least."""
    settings: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "nobody",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        **SOON,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found: list[str] = []
    deadline = time.monotonic() + 30
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} committed records"
        found += [
            (message.value() or b"").decode()
            for message in consumer.consume(100, 0.2)
            if message.error() is None
        ]
    consumer.close()
    return found


@pytest.mark.spec("TXN-36")
def test_scenario_24_a_decided_transaction_is_finished_once_by_the_next_coordinator(
    shared: SharedCluster,
) -> None:
    topic = "scenario-24"
    with shared.healthy() as cluster:
        cluster.create_topic(topic)
        # The controller must hear the coordinator, or the in-sync set cannot lose the leader.
        partition = next(n for n in range(3) if cluster.leader(topic, n) != cluster.controller)
        leader = cluster.leader(topic, partition)
        id = transactional_id_of(cluster, leader)
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": id,
                "transaction.timeout.ms": 60_000,
                **SOON,
                "socket.timeout.ms": 20_000,  # until the leader has left the in-sync set
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        names = [f"n-{number}" for number in range(10)]
        for name in names:
            producer.produce(topic, name.encode(), partition=partition)
        assert producer.flush(30) == 0
        coordinator = coordinator_of(cluster, id)
        assert coordinator != leader
        # The decision is replicated to the third broker; markers do not reach the leader.
        cluster.proxies.isolate(name_of(coordinator), name_of(leader))
        producer.commit_transaction(30)
        cluster.kill(coordinator)
        cluster.heal()
        assert committed(cluster, topic, len(names)) == names
        cluster.start(coordinator)
        cluster.wait_until_all_in_sync()
        producer.begin_transaction()
        producer.produce(topic, b"next", partition=partition)
        producer.commit_transaction(30)
        assert committed(cluster, topic, len(names) + 1) == [*names, "next"]
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()


@pytest.mark.slow
@pytest.mark.spec("TXN-17", "TXN-40")
def test_scenario_25_an_end_of_a_transaction_that_comes_after_the_next_began_is_refused(
    shared: SharedCluster,
) -> None:
    """Of the second version. The coordinator moves between the two, so both learn of it."""
    topic, id = "scenario-25", "late"
    with shared.healthy() as cluster:
        cluster.create_topic(topic, [[1, 2, 3]])
        wait_for(lambda: coordinator_of(cluster, id) > 0, 30, "a coordinator")
        first = on_its_coordinator(cluster, id, lambda line: begun(line, 2, id))
        write_in_transaction(cluster, topic, first, "first")
        second = on_its_coordinator(cluster, id, lambda line: ended(line, first))
        write_in_transaction(cluster, topic, second, "second")
        old = coordinator_of(cluster, id)
        assert cluster.brokers[old].terminate() == 0
        wait_for(lambda: coordinator_of(cluster, id) not in (-1, old), 30, "another coordinator")
        for commit in (True, False):
            late = on_its_coordinator(
                cluster, id, lambda line, commit=commit: end(line, first, commit=commit)
            )
            assert late.error_code in (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch)
        cluster.start(old)
        on_its_coordinator(cluster, id, lambda line: ended(line, second))
        assert committed(cluster, topic, 2) == ["first", "second"]


def on_its_coordinator(cluster: ThreeBrokers, id: str, ask: Any) -> Any:
    with Line(cluster.brokers[coordinator_of(cluster, id)].address) as line:
        return ask(line)


def write_in_transaction(cluster: ThreeBrokers, topic: str, who: Who, value: str) -> None:
    """Once the markers of the transaction before are written."""

    def is_taken() -> bool:
        with Line(cluster.brokers[cluster.leader(topic)].address) as line:
            return write(line, who, topic, value) is ErrorCode.none

    wait_for(is_taken, 20, "the last transaction to end")
