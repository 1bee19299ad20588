"""Several brokers on one ZooKeeper form a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.cluster.process import BrokerProcess, wait_for
from tests.store.zookeeper_server import Server, zookeeper_server

BROKERS = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


def brokers_on(server: Server, folder: Path, path: str) -> list[BrokerProcess]:
    return [
        BrokerProcess(
            folder / str(id),
            {
                "zookeeper.connect": f"{server.address}{path}",
                "zookeeper.session.timeout.ms": "2000",
                "broker.id": str(id),
                "offsets.topic.replication.factor": "1",
            },
        )
        for id in range(1, BROKERS + 1)
    ]


def seen_by(broker: BrokerProcess) -> Any:
    return AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=30)


def create(broker: BrokerProcess, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    [created] = admin.create_topics([NewTopic(topic, partitions, 1)], operation_timeout=30).values()
    created.result(timeout=60)


def send(broker: BrokerProcess, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    failures: list[object] = []
    for number, value in enumerate(values):
        producer.produce(
            topic, value, partition=number % BROKERS, on_delivery=lambda e, _: failures.append(e)
        )
    assert producer.flush(60) == 0
    assert set(failures) == {None}


def received(broker: BrokerProcess, topic: str, count: int) -> set[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values: set[bytes | None] = set()
    try:
        for _ in range(600):
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                values.add(message.value())
            if len(values) == count:
                break
    finally:
        consumer.close()
    return values


@pytest.mark.spec("CTL-14", "CTL-15", "CTL-44", "CTL-48", "TOOL-20")
def test_topics_are_created_through_any_broker_and_spread_over_all(
    server: Server, tmp_path: Path
) -> None:
    brokers = brokers_on(server, tmp_path, "/spread")
    with ExitStack() as stack:
        for broker in brokers:
            stack.enter_context(broker)
        for broker in brokers:
            wait_for(lambda at=broker: len(seen_by(at).brokers) == BROKERS, 30, "all brokers")  # type: ignore[misc]
        for number, broker in enumerate(brokers):
            topic = f"through-{number}"
            create(broker, topic, BROKERS)
            leaders = {one.leader for one in seen_by(broker).topics[topic].partitions.values()}
            assert leaders == {1, 2, 3}
        values = [b"%d" % number for number in range(30)]
        send(brokers[0], "through-2", values)
        assert received(brokers[2], "through-2", len(values)) == set(values)
        for broker in reversed(brokers):
            assert broker.terminate() == 0


@pytest.mark.spec("CTL-19", "CTL-45", "CTL-46")
def test_when_the_controller_is_killed_another_broker_creates_topics_and_it_comes_back(
    server: Server, tmp_path: Path
) -> None:
    brokers = brokers_on(server, tmp_path, "/failover")
    with ExitStack() as stack:
        for broker in brokers:
            stack.enter_context(broker)
        first, *others = brokers
        wait_for(lambda: len(seen_by(others[1]).brokers) == BROKERS, 30, "all brokers")
        first.kill()
        wait_for(lambda: set(seen_by(others[1]).brokers) == {2, 3}, 30, "two brokers")
        create(others[1], "after", 2)
        assert {one.leader for one in seen_by(others[0]).topics["after"].partitions.values()} == {
            2,
            3,
        }
        first.start()
        wait_for(lambda: set(seen_by(first).brokers) == {1, 2, 3}, 30, "all brokers")
        create(first, "again", BROKERS)
        values = [b"%d" % number for number in range(9)]
        send(first, "again", values)
        assert received(others[0], "again", len(values)) == set(values)
