"""What Kafka's own tools say of groups, and do to their offsets."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

from ottla.testing import Broker
from tests.interop.tools_in_one import KafkaTools
from tools import kafka_cache

PARTITIONS: Final = 2
RECORDS: Final = 100
WAIT_S: Final = 30.0
STEP_MS: Final = 60_000
numbers: Final = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def tools(broker: Broker) -> Iterator[KafkaTools]:
    try:
        tools = KafkaTools(broker.bootstrap_servers)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    yield tools
    tools.close()


@pytest.fixture(scope="module")
def began_ms() -> int:
    """When the first record of each partition says it was written; the next ones, a minute on."""
    return int(time.time() * 1000) // 1000 * 1000 - RECORDS * STEP_MS


@pytest.fixture
def topic(broker: Broker, began_ms: int) -> str:
    """A new topic with a hundred records in each partition, a minute apart."""
    name = f"tooled-{next(numbers)}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            stamp = began_ms + number * STEP_MS
            producer.produce(name, str(number), partition=partition, timestamp=stamp)
    assert producer.flush(WAIT_S) == 0
    return name


def member(broker: Broker, topic: str, *offsets: int) -> Consumer:
    """The only member of a group named like its topic, that has committed these offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "group.protocol": "classic",
            "client.id": "teller",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + WAIT_S
    while len(consumer.assignment()) != PARTITIONS:
        assert time.monotonic() < deadline
        consumer.poll(0.05)
    wanted = [TopicPartition(topic, at, offset) for at, offset in enumerate(offsets)]
    consumer.commit(offsets=wanted, asynchronous=False)
    return consumer


def rows(printed: str) -> list[dict[str, str]]:
    """A table of a tool, line by line, by the names of its columns."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    head = next(at for at, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[head], line, strict=False)) for line in lines[head + 1 :]]


def described(tools: KafkaTools, group: str) -> list[tuple[str, ...]]:
    told = rows(tools.done("kafka-consumer-groups", "--describe", "--group", group))
    shown = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    return sorted(tuple(row[name] for name in shown) for row in told)


def reset(tools: KafkaTools, topic: str, *how: str) -> str:
    words = ("--group", topic, "--reset-offsets", "--topic", topic, *how)
    return tools.done("kafka-consumer-groups", *words)


@pytest.mark.spec("GRP-14", "GRP-60", "GRP-65", "MON-23", "TOOL-12")
def test_kafka_consumer_groups_prints_members_states_and_lag(
    broker: Broker, topic: str, tools: KafkaTools
) -> None:
    consumer = member(broker, topic, 7)
    assert described(tools, topic) == [("0", "7", "100", "93"), ("1", "-", "100", "-")]
    words = ("--describe", "--group", topic)
    [row] = rows(tools.done("kafka-consumer-groups", *words, "--members", "--verbose"))
    assert row["CLIENT-ID"] == "teller"
    assert row["#PARTITIONS"] == str(PARTITIONS)
    assert row["CURRENT-ASSIGNMENT"] == f"{topic}:0,1"
    [row] = rows(tools.done("kafka-consumer-groups", *words, "--state").replace("(ID)", ""))
    assert (row["ASSIGNMENT-STRATEGY"], row["#MEMBERS"]) == ("(0)", "Stable")  # by one, for (0)
    listed = tools.done("kafka-consumer-groups", "--list", "--state", "stable")
    assert topic in {row["GROUP"] for row in rows(listed)}
    consumer.close()
    listed = tools.done("kafka-consumer-groups", "--list", "--state", "empty")
    assert topic in {row["GROUP"] for row in rows(listed)}
    assert described(tools, topic) == [("0", "7", "100", "93")]


@pytest.mark.spec("GRP-60", "TOOL-12")
def test_kafka_consumer_groups_resets_offsets_every_way(
    broker: Broker, topic: str, tools: KafkaTools, began_ms: int
) -> None:
    member(broker, topic, 40, 60).close()
    a_time = time.strftime("%Y-%m-%dT%H:%M:%S.000", time.localtime(began_ms / 1000 + 25 * 60))
    for how, offsets in (
        (("--shift-by", "5", "--dry-run"), ("40", "60")),
        (("--shift-by", "5", "--execute"), ("45", "65")),
        (("--shift-by", "-50", "--execute"), ("0", "15")),  # not before the first
        (("--shift-by", "90", "--execute"), ("90", "100")),  # nor past the end
        (("--to-offset", "33", "--execute"), ("33", "33")),
        (("--to-datetime", a_time, "--dry-run"), ("33", "33")),
        (("--to-datetime", a_time, "--execute"), ("25", "25")),
        (("--to-latest", "--execute"), ("100", "100")),
        (("--to-earliest", "--execute"), ("0", "0")),
        (("--to-current", "--execute"), ("0", "0")),
    ):
        planned = rows(reset(tools, topic, *how))
        assert len(planned) == PARTITIONS, how
        if "--execute" in how:
            assert tuple(row["NEW-OFFSET"] for row in sorted(planned, key=str)) == offsets, how
        assert [row[:2] for row in described(tools, topic)] == [
            ("0", offsets[0]),
            ("1", offsets[1]),
        ], how


@pytest.mark.spec("GRP-60", "GRP-69")
def test_the_offsets_of_a_live_group_are_left_alone(
    broker: Broker, topic: str, tools: KafkaTools
) -> None:
    consumer = member(broker, topic, 40, 60)
    told = reset(tools, topic, "--to-earliest", "--execute")
    assert f"only be reset if the group '{topic}' is inactive" in told
    told = tools.run("kafka-consumer-groups", "--delete", "--group", topic).stdout
    assert "not empty" in told
    told = tools.run(
        "kafka-consumer-groups", "--delete-offsets", "--group", topic, "--topic", topic
    ).stdout
    assert "subscribed" in told.lower()
    assert [row[1] for row in described(tools, topic)] == ["40", "60"]
    consumer.close()


@pytest.mark.spec("GRP-69")
def test_kafka_consumer_groups_deletes_offsets_and_groups(
    broker: Broker, topic: str, tools: KafkaTools
) -> None:
    member(broker, topic, 40, 60).close()
    words = ("--delete-offsets", "--group", topic, "--topic", f"{topic}:0")
    assert "Successful" in tools.done("kafka-consumer-groups", *words)
    assert [row[:2] for row in described(tools, topic)] == [("1", "60")]
    told = tools.done("kafka-consumer-groups", "--delete", "--group", topic)
    assert "was successful" in told
    assert topic not in tools.done("kafka-consumer-groups", "--list").split()


@pytest.mark.spec("GRP-49", "GRP-51", "GRP-52", "GRP-53", "GRP-54", "GRP-55", "TOOL-10")
def test_kafkas_own_formatters_read_what_groups_persist(
    broker: Broker, topic: str, tools: KafkaTools
) -> None:
    consumer = member(broker, topic, 7)
    consumer.close()
    tools.done("kafka-consumer-groups", "--delete", "--group", topic)
    offsets = tools.formatted("__consumer_offsets", topic, "OffsetsMessageFormatter")
    key = {"group": topic, "topic": topic, "partition": 0}
    offsets = [one for one in offsets if one["key"]["data"]["group"] == topic]
    assert [one["key"]["data"] for one in offsets] == [key, key]
    assert offsets[0]["value"]["data"]["offset"] == 7
    assert offsets[1]["value"] is None  # the group's end
    found = tools.formatted("__consumer_offsets", topic, "GroupMetadataMessageFormatter")
    groups = [one["value"] for one in found if one["key"]["data"]["group"] == topic]
    assert groups[-1] is None
    told = [value["data"] for value in groups[:-1]]
    assert {value["protocolType"] for value in told} == {"consumer"}
    assert [len(value["members"]) for value in told][-2:] == [1, 0]
    [one] = next(value["members"] for value in told if value["members"])
    assert one["clientId"] == "teller"
    assert one["clientHost"] == "/127.0.0.1"
