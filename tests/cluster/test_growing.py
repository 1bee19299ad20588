"""A single broker that becomes a cluster of three, and is then the one that dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

import ottla
from ottla.cli import main
from tests.cluster.load import connection, create_topic, produce, values
from tests.cluster.process import BrokerProcess, Ended, wait_for
from tests.store.zookeeper_server import Server, zookeeper_server

TOPIC, PAID = "orders", "payments"
NAMES = [f"n-{number}" for number in range(100)]
GROUPS = {f"group-{number}": 10 + number for number in range(12)}
"""With the offset that each has committed; so many that several partitions hold them."""
SESSION = {"zookeeper.session.timeout.ms": "2500"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with zookeeper_server(tmp_path) as running:
        running.wait_until_it_serves()
        yield running


def transactional(address: str, id: str, **settings: Any) -> Producer:
    return Producer(
        {
            **connection(address),
            "transactional.id": id,
            "transaction.timeout.ms": 600_000,
            **settings,
        }
    )


def send(producer: Producer, values: list[str]) -> None:
    for value in values:
        producer.produce(PAID, value.encode(), partition=0)
    assert producer.flush(30) == 0


def commit_offsets(address: str) -> None:
    for name, offset in GROUPS.items():
        consumer = Consumer({**connection(address), "group.id": name})
        at = [TopicPartition(TOPIC, 0, offset)]
        done: Any = consumer.commit(offsets=at, asynchronous=False)
        assert done[0].error is None
        consumer.close()


def committed_offsets(address: str) -> dict[str, int]:
    found = {}
    for name in GROUPS:
        consumer = Consumer({**connection(address), "group.id": name})
        [at] = consumer.committed([TopicPartition(TOPIC, 0)], 60)
        found[name] = at.offset
        consumer.close()
    return found


def committed_values(address: str) -> list[str]:
    """All that a reader of committed data gets of the topic of transactions."""
    consumer = Consumer(
        {
            **connection(address),
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(PAID, 0, 0)])
    found: list[str] = []
    while True:
        [message] = consumer.consume(1, 30.0)
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            break
        if error is None:
            found.append((message.value() or b"").decode())
    consumer.close()
    return found


def ottla_command(*words: str) -> None:
    """It must succeed."""
    assert main.run([*words]) == 0, words


def out_of_sync(address: str, brokers: set[int]) -> list[str]:
    """Partitions, internal ones too, that are not led and in sync on exactly these brokers."""
    with ottla.Admin(bootstrap_servers=address) as admin:
        topics = admin.describe_topics(admin.list_topics(internal=True)).all()
    return [
        f"{name}-{partition.index}: {partition}"
        for name, topic in topics.items()
        for partition in topic.partitions
        if set(partition.isr) != brokers or partition.leader not in brokers
    ]


def end_transactions(producer: Producer) -> None:
    """One that is committed, and one that is aborted."""
    producer.init_transactions(30)
    producer.begin_transaction()
    send(producer, ["paid-1", "paid-2"])
    producer.commit_transaction(30)
    producer.begin_transaction()
    send(producer, ["aborted"])
    producer.abort_transaction(30)


def move_to_zookeeper(broker: BrokerProcess, place: str) -> None:
    assert broker.terminate() == 0
    [data] = broker.dirs
    ottla_command("metadata", "move", "--data-dir", str(data), "--to", f"zookeeper://{place}")
    with pytest.raises(Ended, match="the metadata were moved to ZooKeeper"):
        broker.start()


def give_all_topics_three_replicas(address: str, plan: Path, capsys: Any) -> None:
    """As docs/cluster.md says."""
    capsys.readouterr()
    ottla_command("reassign", "plan", "--all", "-r", "3", "-b", address)
    plan.write_text(capsys.readouterr().out)
    ottla_command("reassign", "execute", str(plan), "--wait", "120", "-b", address)
    wait_for(lambda: not out_of_sync(address, {0, 1, 2}), 60, "three replicas in sync")
    least = "min.insync.replicas=2"
    ottla_command("configs", "set", "topic", least, "--name", "__transaction_state", "-b", address)
    ottla_command("cluster", "health", "-b", address)
    assert "__transaction_state" not in (report := capsys.readouterr().out), report


def assert_fenced(producer: Producer) -> None:
    with pytest.raises(KafkaException):
        producer.begin_transaction()
        producer.produce(PAID, b"zombie", partition=0)
        producer.commit_transaction(30)


@pytest.mark.timeout(300)
@pytest.mark.spec("TOOL-16")
def test_a_single_broker_grows_to_three_and_its_death_loses_nothing(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, first = f"{server.address}/grown", BrokerProcess(tmp_path / "broker-0")
    others = [BrokerProcess(tmp_path / f"broker-{id}", {"broker.id": str(id)}) for id in (1, 2)]
    brokers = [first, *others]
    bootstrap = ",".join(broker.address for broker in brokers)
    left = ",".join(broker.address for broker in others)
    with ExitStack() as stack:
        stack.enter_context(first)
        create_topic(first.address, TOPIC, 3)
        create_topic(first.address, PAID)
        produce(first.address, TOPIC, NAMES)
        commit_offsets(first.address)
        end_transactions(before := transactional(first.address, "ended"))
        # It begins on a single broker, and ends when that one is dead.
        (lasting := transactional(bootstrap, "open")).init_transactions(30)
        lasting.begin_transaction()
        send(lasting, ["open-1", "open-2"])
        move_to_zookeeper(first, place)
        for broker in brokers:
            broker.settings |= {"zookeeper.connect": place, **SESSION}
            stack.enter_context(broker)
        give_all_topics_three_replicas(bootstrap, tmp_path / "plan.json", capsys)
        first.kill()
        wait_for(lambda: not out_of_sync(left, {1, 2}), 60, "leaders on the other two")
        assert values(left, TOPIC, 3) == NAMES
        assert committed_offsets(left) == GROUPS
        assert committed_values(left) == ["paid-1", "paid-2"]
        lasting.commit_transaction(60)
        (after := transactional(left, "ended")).init_transactions(60)
        assert_fenced(before)
        after.begin_transaction()
        send(after, ["paid-3"])
        after.commit_transaction(60)
        assert committed_values(left) == ["paid-1", "paid-2", "open-1", "open-2", "paid-3"]
        first.start()
        wait_for(lambda: not out_of_sync(bootstrap, {0, 1, 2}), 60, "the first broker's return")
        assert values(first.address, TOPIC, 3) == NAMES
        for broker in brokers:
            assert "Traceback" not in broker.said_ever
