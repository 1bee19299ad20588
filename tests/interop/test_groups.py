"""Groups beyond reading: what a restart keeps, static members, what an admin client sees.

Members that come and go are in `test_group_churn`, Kafka's tools in `test_group_tools`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

from ottla.testing import Broker

PARTITIONS: Final = 4
RECORDS: Final = 400
WAIT_S: Final = 25.0
numbers: Final = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": "100"}) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> str:
    return filled(broker.bootstrap_servers)


def filled(bootstrap: str) -> str:
    """A new topic with a hundred numbered records in each partition."""
    name = f"grouped-{next(numbers)}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(WAIT_S)
    fill(bootstrap, name)
    return name


def fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, value=str(number), partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def confluent(bootstrap: str, group: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "classic",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 200,
            "log_level": 3,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def until(condition: Any, step: Any, what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"it took too long: {what}"
        step()


def settle(members: list[Consumer]) -> None:
    """Until every partition has one owner, and everybody's share is fair."""

    def shares() -> list[int]:
        return sorted(len(member.assignment()) for member in members)

    fair = sorted(
        PARTITIONS // len(members) + (at < PARTITIONS % len(members)) for at in range(len(members))
    )
    until(lambda: shares() == fair, lambda: poll(members), f"a fair share of {fair}")


def poll(members: list[Consumer]) -> list[int]:
    got = []
    for member in members:
        for message in member.consume(200, 0.05):
            assert not message.error(), message.error()
            got.append(int(message.value() or b""))
    return got


@pytest.mark.spec("GRP-59", "GRP-75", "GRP-02")
def test_committed_offsets_survive_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as first:
        topic = filled(first.bootstrap_servers)
        member = confluent(first.bootstrap_servers, "keeper")
        member.subscribe([topic])
        got: list[int] = []
        until(lambda: len(got) == RECORDS, lambda: got.extend(poll([member])), "the records")
        member.commit(asynchronous=False)
        member.close()
    with Broker(data_dir=tmp_path) as second:
        fill(second.bootstrap_servers, topic)
        member = confluent(second.bootstrap_servers, "keeper")
        member.subscribe([topic])
        again: list[int] = []
        until(lambda: len(again) >= RECORDS, lambda: again.extend(poll([member])), "the rest")
        assert sorted(again) == list(range(RECORDS))
        member.close()


@pytest.mark.spec("GRP-48")
def test_a_static_member_that_restarts_disturbs_nobody(broker: Broker, topic: str) -> None:
    group = f"static-{topic}"
    revoked: list[Any] = []
    steady = confluent(broker.bootstrap_servers, group, group_instance_id="steady")
    steady.subscribe([topic], on_revoke=lambda _, parts: revoked.append(parts))
    settle([steady])
    coming = confluent(broker.bootstrap_servers, group, group_instance_id="coming")
    coming.subscribe([topic])
    settle([steady, coming])
    before = coming.assignment()
    revoked.clear()
    coming.close()  # a static member leaves without a word
    back = confluent(broker.bootstrap_servers, group, group_instance_id="coming")
    back.subscribe([topic])
    until(lambda: bool(back.assignment()), lambda: poll([steady, back]), "its share")
    assert back.assignment() == before
    assert revoked == []
    steady.close()
    back.close()


@pytest.mark.spec("GRP-60", "GRP-65", "GRP-69", "GRP-14")
def test_confluents_admin_lists_describes_alters_and_deletes(broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    group = f"seen-{topic}"
    member = confluent(broker.bootstrap_servers, group)
    member.subscribe([topic])
    settle([member])
    member.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    assert described.state is ConsumerGroupState.STABLE
    assert len(described.members[0].assignment.topic_partitions) == PARTITIONS
    member.close()
    listed = admin.list_consumer_groups().result(WAIT_S).valid
    assert group in {one.group_id for one in listed}
    simple = confluent(broker.bootstrap_servers, group)
    assert simple.committed([TopicPartition(topic, 0)], WAIT_S)[0].offset == 7
    admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert simple.committed([TopicPartition(topic, 0)], WAIT_S)[0].offset < 0
    simple.close()
