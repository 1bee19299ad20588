"""Groups that mix our consumers with Java's and confluent-kafka's: everybody rebalances alike.

Whoever leads the group deals the partitions out for all, so each order of joining puts another
client's assignor to the test.
"""

from __future__ import annotations

import itertools
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, Self

import confluent_kafka
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

import ottla
from ottla.client.consumer.rebalance_listener import RebalanceListener
from tools import kafka_cache, nodes

PARTITIONS: Final = 6
WAIT_S: Final = 60.0
SOURCE: Final = Path(__file__).parent / "java" / "GroupMember.java"
numbers: Final = itertools.count(1)


class Member(Protocol):
    """One member, whatever client it is."""

    read: list[tuple[int, int]]

    def step(self) -> None:
        """Poll once."""

    def has(self) -> frozenset[int]:
        """The partitions it believes to have."""

    def leave(self) -> None: ...


class OttlaMember:
    def __init__(self, bootstrap: str, group: str, topic: str, settings: dict[str, str]) -> None:
        self.read: list[tuple[int, int]] = []
        self._consumer: ottla.Consumer[bytes, bytes] = ottla.Consumer(
            config={
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                **settings,
            }
        )
        consumer = self._consumer

        class Committing(RebalanceListener):
            def on_revoked(self, partitions: frozenset[ottla.TopicPartition]) -> None:
                consumer.commit()

        consumer.subscribe([topic], listener=Committing())

    def step(self) -> None:
        for record in self._consumer.poll(0.05):
            self.read.append((record.partition, int(record.value or b"")))

    def has(self) -> frozenset[int]:
        return frozenset(tp.partition for tp in self._consumer.assignment())

    def leave(self) -> None:
        self._consumer.close()


class ConfluentMember:
    def __init__(self, bootstrap: str, group: str, topic: str, settings: dict[str, str]) -> None:
        self.read: list[tuple[int, int]] = []
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 3,
                **settings,
            }
        )
        self._consumer.subscribe([topic], on_revoke=self._commit)

    def _commit(self, consumer: Any, partitions: Any) -> None:
        try:
            consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            assert error.args[0].code() == confluent_kafka.KafkaError._NO_OFFSET, error

    def step(self) -> None:
        for message in self._consumer.consume(100, 0.05):
            assert not message.error(), message.error()
            self.read.append((message.partition() or 0, int(message.value() or b"")))

    def has(self) -> frozenset[int]:
        return frozenset(each.partition for each in self._consumer.assignment())

    def leave(self) -> None:
        self._consumer.close()


class JavaMember:
    def __init__(self, bootstrap: str, group: str, topic: str, settings: dict[str, str]) -> None:
        self.read: list[tuple[int, int]] = []
        self._has: frozenset[int] = frozenset()
        strategies = {
            "range": "org.apache.kafka.clients.consumer.RangeAssignor",
            "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        }
        key = "partition.assignment.strategy"
        if key in settings:
            settings = {**settings, key: strategies[settings[key]]}
        path = kafka_cache.compiled("clients", [SOURCE])
        pairs = [f"{name}={value}" for name, value in settings.items()]
        self._process = subprocess.Popen(
            kafka_cache.java(path, "GroupMember", bootstrap, group, topic, *pairs),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._listen, name="java-member")
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def step(self) -> None:
        assert self._process.poll() is None, "the Java member has ended"
        time.sleep(0.02)
        self._hear()

    def _hear(self) -> None:
        while not self._lines.empty():
            word, _, rest = self._lines.get().strip().partition(" ")
            if word == "has":
                self._has = frozenset(int(part) for part in rest.split(",") if part)
            elif word == "read":
                partition, value = rest.split()
                self.read.append((int(partition), int(value)))

    def has(self) -> frozenset[int]:
        return self._has

    def leave(self) -> None:
        self._process.communicate("leave\n", timeout=WAIT_S)
        self._reader.join()
        self._hear()


KINDS: Final[dict[str, type[Any]]] = {
    "ottla": OttlaMember,
    "confluent": ConfluentMember,
    "java": JavaMember,
}


class Mixed:
    """A group under test."""

    def __init__(self, node: nodes.Node, settings: dict[str, str]) -> None:
        self.topic = f"mixed-{next(numbers)}"
        self._bootstrap = node.bootstrap
        self._settings = settings
        self._admin = AdminClient({"bootstrap.servers": node.bootstrap})
        new = NewTopic(self.topic, PARTITIONS, 1)
        self._admin.create_topics([new])[self.topic].result(WAIT_S)
        self._producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
        self._written = itertools.count()
        self._present: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._present:
            member.leave()

    def join(self, kind: str) -> Member:
        try:
            member: Member = KINDS[kind](
                self._bootstrap, f"group-{self.topic}", self.topic, self._settings
            )
        except kafka_cache.Missing as missing:
            pytest.skip(str(missing))
        self._present.append(member)
        return member

    def without(self, members: Sequence[Member], leaver: Member) -> list[Member]:
        """Those who stay when one leaves."""
        leaver.leave()
        self._present.remove(leaver)
        return [member for member in members if member is not leaver]

    def write(self, count: int) -> list[int]:
        numbers = [next(self._written) for _ in range(count)]
        for number in numbers:
            self._producer.produce(self.topic, str(number), partition=number % PARTITIONS)
        assert self._producer.flush(WAIT_S) == 0
        return numbers

    def until(self, done: Callable[[], bool], what: str, members: Sequence[Member]) -> None:
        end = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < end, (what, [sorted(each.has()) for each in members])
            for member in members:
                member.step()

    def settle(self, members: Sequence[Member]) -> None:
        """Until every partition has one owner and the shares are even."""

        def even() -> bool:
            shares = [member.has() for member in members]
            sizes = [len(share) for share in shares]
            return (
                sum(sizes) == PARTITIONS == len({part for share in shares for part in share})
                and max(sizes) - min(sizes) <= 1
            )

        self.until(even, "an even share", members)


CLASSIC: Final = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "200",
    "max.poll.interval.ms": "30000",
}


@pytest.mark.spec("CON-05", "CON-21", "CON-22", "CON-24", "CON-28", "CON-30", "CON-39")
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize(
    "order",
    [("ottla", "confluent", "java"), ("java", "ottla", "confluent")],
    ids="-".join,
)
def test_a_mixed_group_shares_every_partition_as_members_come_and_go(
    cluster_under_test: nodes.Node, strategy: str, order: tuple[str, ...]
) -> None:
    settings = {**CLASSIC, "partition.assignment.strategy": strategy}
    with Mixed(cluster_under_test, settings) as group:
        members: list[Member] = []
        written = group.write(60)
        for kind in order:
            members.append(group.join(kind))
            group.settle(members)
            written += group.write(30)
        group.until(
            lambda: {value for each in members for _, value in each.read} == set(written),
            "all records",
            members,
        )
        assert all(
            partition == value % PARTITIONS for each in members for partition, value in each.read
        )
        rest = group.without(members, members[0])
        group.settle(rest)
        more = group.write(30)
        group.until(
            lambda: set(more) <= {value for each in rest for _, value in each.read},
            "the records that came later",
            rest,
        )


@pytest.fixture
def modern(cluster_under_test: nodes.Node) -> nodes.Node:
    """A cluster that deals partitions out itself."""
    import asyncio
    from random import Random

    from ottla.client.cluster import Cluster, Target
    from ottla.config.client import ClientConfig
    from ottla.model.clock import SystemClock

    async def offers() -> bool:
        config = ClientConfig.from_options({"bootstrap_servers": cluster_under_test.bootstrap})
        async with Cluster(config, SystemClock(), Random()) as cluster:
            return (await cluster.versions(Target.ANY)).offers(68)

    if not asyncio.run(offers()):
        pytest.skip("the cluster does not offer ConsumerGroupHeartbeat")
    return cluster_under_test


@pytest.mark.spec("CON-05")
def test_a_group_of_the_new_protocol_mixes_clients_too(modern: nodes.Node) -> None:
    with Mixed(modern, {"group.protocol": "consumer"}) as group:
        members: list[Member] = []
        written = group.write(60)
        for kind in ("ottla", "confluent", "java", "ottla"):
            members.append(group.join(kind))
            group.settle(members)
            written += group.write(30)
        group.until(
            lambda: {value for each in members for _, value in each.read} == set(written),
            "all records",
            members,
        )
        rest = group.without(members, members[0])
        group.settle(rest)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert "ottla-consumer" not in [thread.name for thread in threading.enumerate()]
