"""Other people's consumers as members of one group, all driven in turn by one test.

A `Member` is polled, tells what it holds, commits and closes, whichever library it is of.
"""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

from tools import kafka_cache

WAIT_S: Final = 60.0
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
}
"""Heartbeats as often as a test has patience for."""
_DRIVER: Final = Path(__file__).parent / "java" / "GroupDriver.java"
_numbers: Final = itertools.count(1)


class Member(Protocol):
    def poll(self) -> list[int]:
        """The numbers that have come since."""

    def assigned_partitions(self) -> set[int]:
        """The partitions it holds."""

    def commit(self) -> None: ...

    def close(self) -> None: ...


class ConfluentMember:
    """confluent-kafka; commits what it has been given before it gives a partition up."""

    def __init__(self, bootstrap: str, group: str, topic: str, **settings: Any) -> None:
        self._given: dict[tuple[str, int], int] = {}
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        self.consumer.subscribe([topic], on_revoke=self._on_revoke)

    def poll(self) -> list[int]:
        got = []
        for message in self.consumer.consume(500, 0.05):
            assert not message.error(), message.error()
            topic, partition = message.topic() or "", message.partition() or 0
            self._given[topic, partition] = (message.offset() or 0) + 1
            got.append(int(message.value() or b""))
        return got

    def assigned_partitions(self) -> set[int]:
        return {part.partition for part in self.consumer.assignment()}

    def commit(self) -> None:
        self._commit(list(self._given))

    def close(self) -> None:
        self.consumer.close()

    def _on_revoke(self, _: Consumer, parts: Sequence[TopicPartition]) -> None:
        self._commit([(part.topic, part.partition) for part in parts])

    def _commit(self, keys: list[tuple[str, int]]) -> None:
        """Again while its epoch is stale: whenever another member goes, there is a newer one.

        The client hears of it with a heartbeat, and does not try again by itself.
        """
        offsets = [TopicPartition(*key, self._given.pop(key)) for key in keys if key in self._given]
        end = time.monotonic() + WAIT_S
        while offsets:
            try:
                self.consumer.commit(offsets=offsets, asynchronous=False)
                return
            except KafkaException as refused:
                stale = refused.args[0].code() == KafkaError.STALE_MEMBER_EPOCH
                if not stale or time.monotonic() > end:
                    raise
                time.sleep(0.02)


class JavaMembers:
    """A virtual machine with any number of Kafka's own consumers."""

    def __init__(self, jvm: subprocess.Popen[str]) -> None:
        self._jvm = jvm

    def open(self, group: str, topic: str, **settings: str) -> JavaMember:
        name = f"member{next(_numbers)}"
        named = {"group.id": group} | {k.replace("_", "."): v for k, v in settings.items()}
        self.ask("open", name, topic, *(f"{key}={value}" for key, value in named.items()))
        return JavaMember(self, name)

    def ask(self, *question: object) -> list[str]:
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        self._jvm.stdin.write("\t".join(map(str, question)) + "\n")
        self._jvm.stdin.flush()
        verdict, *values = self._jvm.stdout.readline().rstrip("\n").split("\t")
        if verdict == "refused":
            raise Refused(values[0])
        assert verdict == "ok", f"the Java client ended: {verdict}"
        return [value for value in values if value]


class Refused(Exception):
    """An exception of the Java client, by its name."""


class JavaMember:
    def __init__(self, members: JavaMembers, name: str) -> None:
        self._members = members
        self._name = name

    def poll(self) -> list[int]:
        return [int(value) for value in self._members.ask("poll", self._name, 50)]

    def assigned_partitions(self) -> set[int]:
        return {int(part.rpartition("-")[2]) for part in self.parts()}

    def parts(self) -> list[str]:
        return self._members.ask("assignment", self._name)

    def commit(self) -> None:
        self._members.ask("commit", self._name)

    def close(self) -> None:
        self._members.ask("close", self._name)


@contextmanager
def java_members(bootstrap: str) -> Iterator[JavaMembers]:
    classes = kafka_cache.compiled("clients", [_DRIVER])
    command = kafka_cache.java(classes, "GroupDriver", bootstrap)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as jvm:
        yield JavaMembers(jvm)
        assert jvm.stdin is not None
        jvm.stdin.close()
        jvm.wait(60)


# What a test does with them


def new_topic(bootstrap: str, partitions: int, name: str | None = None) -> str:
    name = name or f"shared-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(WAIT_S)
    return name


class Numbers:
    """Writes 0, 1, 2, … to the partitions of a topic in turn."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._topic, self._partitions = topic, partitions
        self.written = 0

    def write(self, count: int) -> None:
        for number in range(self.written, self.written + count):
            self._producer.produce(
                self._topic, value=str(number), partition=number % self._partitions
            )
        self.written += count
        assert self._producer.flush(WAIT_S) == 0


def until(condition: Callable[[], bool], step: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"it took too long: {what}"
        step()


def settle(members: Sequence[Member], partitions: int, got: list[int]) -> None:
    """Poll until the partitions are shared out fairly; what comes meanwhile is kept."""
    fair = sorted(
        partitions // len(members) + (at < partitions % len(members)) for at in range(len(members))
    )

    def shares() -> list[set[int]]:
        return [member.assigned_partitions() for member in members]

    def is_fair() -> bool:
        held = shares()
        return sorted(map(len, held)) == fair and len(set().union(*held)) == partitions

    until(is_fair, lambda: drain(members, got), f"a fair share of {fair}")


def drain(members: Sequence[Member], got: list[int]) -> None:
    for member in members:
        got.extend(member.poll())


def close_in_turn(members: Sequence[Member], partitions: int, got: list[int]) -> None:
    """Each once it holds what it shall hold.

    librdkafka that is closed with a new assignment in its queue leaves its group first and revokes
    afterwards: the commit of `on_revoke` comes from a member nobody knows, or it waits for ever.
    """
    left = list(members)
    while left:
        settle(left, partitions, got)
        leaves = left.pop(0)
        leaves.commit()
        leaves.close()
