"""Other people's consumers in groups: who reads what, what is committed, what tools say of it.

Each client library joins, shares, commits and leaves in its own way; the promise is the same for
all: every record goes to exactly one member of a generation, and what was committed is there.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

from ottla.testing import Broker
from tools import kafka_cache

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


def drain(members: list[Consumer]) -> list[int]:
    """What there is, until nothing more comes."""
    got: list[int] = []
    while some := poll(members):
        got += some
    return got


def closed_at_once(member: Consumer) -> None:
    began = time.monotonic()
    member.close()
    assert time.monotonic() - began < 20, "leaving does not wait for anybody"


@pytest.mark.spec("GRP-01", "GRP-22", "GRP-46", "GRP-36")
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_each_record_goes_to_one_member_as_members_come_and_go(
    broker: Broker, topic: str, strategy: str
) -> None:
    group = f"{strategy}-{topic}"
    members: list[Consumer] = []
    for size in range(1, 5):
        member = confluent(broker.bootstrap_servers, group, partition_assignment_strategy=strategy)
        member.subscribe([topic])
        members.append(member)
        if size in (1, 2, 4):
            settle(members)
    owned = [(part.topic, part.partition) for one in members for part in one.assignment()]
    assert len(owned) == len(set(owned)) == PARTITIONS
    drain(members)
    fill(broker.bootstrap_servers, topic)
    got: list[int] = []
    until(lambda: len(got) >= RECORDS, lambda: got.extend(poll(members)), "the records")
    assert sorted(got + drain(members)) == list(range(RECORDS))
    for member in members[2:]:
        closed_at_once(member)
    settle(members[:2])
    for member in members[:2]:
        closed_at_once(member)


@pytest.mark.spec("GRP-44")
def test_the_work_of_a_member_that_is_killed_is_taken_over(broker: Broker, topic: str) -> None:
    group = f"killed-{topic}"
    survivor = confluent(broker.bootstrap_servers, group)
    survivor.subscribe([topic])
    settle([survivor])
    program = (
        "import sys; from confluent_kafka import Consumer\n"
        "c = Consumer({'bootstrap.servers': sys.argv[1], 'group.id': sys.argv[2],"
        " 'session.timeout.ms': 6000})\n"
        "c.subscribe([sys.argv[3]])\n"
        "while True: c.poll(0.1); c.assignment() and print('joined', flush=True)"
    )
    command = [sys.executable, "-c", program, broker.bootstrap_servers, group, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        until(
            lambda: len(survivor.assignment()) == PARTITIONS // 2,
            lambda: poll([survivor]),
            "the other to join",
        )
        assert other.stdout is not None
        assert other.stdout.readline() == b"joined\n"
        other.send_signal(signal.SIGKILL)
    settle([survivor])
    survivor.close()


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


@pytest.mark.spec("GRP-22", "GRP-36", "GRP-60")
def test_kafka_python_shares_commits_and_leaves(broker: Broker, topic: str) -> None:
    group = f"kafka-python-{topic}"
    members = [
        kafka.KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
        )
        for _ in range(2)
    ]
    got: list[int] = []

    def step() -> None:
        for member in members:
            for records in member.poll(100).values():
                got.extend(int(record.value) for record in records)

    until(
        lambda: sorted(len(member.assignment()) for member in members) == [2, 2],
        step,
        "a fair share",
    )
    until(lambda: set(got) == set(range(RECORDS)), step, "the records")
    for member in members:
        member.commit()
    offsets = [members[0].committed(kafka.TopicPartition(topic, at)) for at in range(PARTITIONS)]
    assert offsets == [RECORDS // PARTITIONS] * PARTITIONS
    for member in members:
        member.close()


@pytest.mark.spec("GRP-22", "GRP-36", "GRP-60")
def test_aiokafka_shares_commits_and_leaves(broker: Broker, topic: str) -> None:
    async def story() -> None:
        members = [
            aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=broker.bootstrap_servers,
                group_id=f"aiokafka-{topic}",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=6_000,
                heartbeat_interval_ms=200,
            )
            for _ in range(2)
        ]
        got: list[int] = []
        await asyncio.gather(*(member.start() for member in members))
        async with asyncio.timeout(WAIT_S):
            while set(got) != set(range(RECORDS)) or any(
                len(member.assignment()) != PARTITIONS // 2 for member in members
            ):
                for member in members:
                    for records in (await member.getmany(timeout_ms=100)).values():
                        got.extend(int(record.value or b"") for record in records)
        for member in members:
            await member.commit()
        for at in range(PARTITIONS):
            committed = await members[0].committed(aiokafka.TopicPartition(topic, at))
            assert committed == RECORDS // PARTITIONS
        for member in members:
            await member.stop()

    asyncio.run(story())


@pytest.mark.spec("GRP-49", "GRP-51", "GRP-52", "GRP-53", "GRP-54", "GRP-55")
@pytest.mark.parametrize(
    ("formatter", "says"),
    [
        ("OffsetsMessageFormatter", '"offset":7'),
        ("GroupMetadataMessageFormatter", '"protocolType":"consumer"'),
    ],
)
def test_kafkas_own_formatters_read_what_groups_persist(
    broker: Broker, topic: str, formatter: str, says: str
) -> None:
    group = f"formatted-{topic}"
    member = confluent(broker.bootstrap_servers, group)
    member.subscribe([topic])
    settle([member])
    member.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    member.close()
    try:
        printed = kafka_cache.run_tool(
            "kafka-console-consumer",
            "--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "5000",
            "--formatter", f"org.apache.kafka.tools.consumer.{formatter}",
            "--bootstrap-server", broker.bootstrap_servers,
            timeout_s=60,
        )  # fmt: skip
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    lines = [line for line in printed.stdout.splitlines() if group in line]
    assert any(says in line for line in lines), printed.stdout + printed.stderr


@pytest.mark.spec("GRP-14", "GRP-60")
def test_kafka_consumer_groups_prints_lag_and_resets_offsets(broker: Broker, topic: str) -> None:
    group = f"tool-{topic}"
    member = confluent(broker.bootstrap_servers, group)
    member.subscribe([topic])
    settle([member])
    member.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    reset = ("--reset-offsets", "--topic", topic, "--execute")
    live = tool(broker, group, *reset, "--to-earliest")
    assert "inactive" in live.stdout + live.stderr
    member.close()
    described = tool(broker, group, "--describe").stdout
    [line] = [line for line in described.splitlines() if line.split()[1:3] == [topic, "0"]]
    assert line.split()[3:6] == ["7", "100", "93"]
    tool(broker, group, *reset, "--to-latest")
    described = tool(broker, group, "--describe").stdout
    lags = [line.split()[5] for line in described.splitlines() if f" {topic} " in line]
    assert lags == ["0"] * PARTITIONS


def tool(broker: Broker, group: str, *args: str) -> subprocess.CompletedProcess[str]:
    try:
        return kafka_cache.run_tool(
            "kafka-consumer-groups", *args, "--group", group,
            "--bootstrap-server", broker.bootstrap_servers, timeout_s=60,
        )  # fmt: skip
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
