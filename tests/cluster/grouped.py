"""Members of groups under which brokers are mistreated, and the history they write.

Owns: client threads of librdkafka, and the events of `ottla.testing.history` that they write.
Never: touches a broker's process.

A member reads and commits what it has read. Now and then it leaves, and another takes its place,
so that rebalances happen while coordinators move. It also leaves when it cannot know whether a
commit was done: the request may still be under way, and only another generation keeps it from
being taken after a later one.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ottla.testing.history import Commit, Event, Outcome, Poll
from tests.cluster.transacting import Ground, Topic, member_settings
from tests.cluster.transaction_readers import polls

REFUSED: Final = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
        KafkaError._NO_OFFSET,
    }
)
"""The broker, or the client itself, said no: nothing was committed."""


class Member(threading.Thread):
    """One place in a group, taken by one consumer after another.

    The name of a group begins with its protocol.
    """

    def __init__(self, ground: Ground, topic: Topic, group: str, number: int, dice: Random) -> None:
        super().__init__(name=f"{group}-{number}", daemon=True)
        self._ground = ground
        self._topic = topic
        self._group = group
        self._protocol = group.partition("-")[0]
        self._dice = dice
        self._assigned: dict[int, int] = {}
        """How often each partition was assigned to the present consumer."""

    def run(self) -> None:
        for life in itertools.count():
            if self._ground.stop.is_set():
                return
            self._live(f"{self.name}.{life}")

    def _live(self, process: str) -> None:
        """Read and commit until it is time to leave."""
        consumer = Consumer(member_settings(self._ground, self._group, self._protocol))
        self._assigned.clear()
        consumer.subscribe([self._topic], on_assign=self._on_assign)
        leaves_at = time.monotonic() + self._dice.uniform(5, 30)
        try:
            while time.monotonic() < leaves_at and not self._ground.stop.is_set():
                messages = consumer.consume(self._dice.randint(1, 300), 0.1)
                read = [
                    self._of_assignment(poll)
                    for poll in polls(process, messages, committed=False)
                    if isinstance(poll, Poll)
                ]
                self._ground.events += read
                if read and not self._commit(process, consumer, read):
                    return
        finally:
            consumer.close()

    def _on_assign(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        for one in partitions:
            self._assigned[one.partition] = self._assigned.get(one.partition, 0) + 1

    def _of_assignment(self, poll: Poll) -> Poll:
        number = int(poll.partition.rpartition("-")[2])
        assigned = self._assigned.get(number, 0)
        return Poll(poll.process, poll.partition, assigned, poll.records, group=self._group)

    def _commit(self, process: str, consumer: Consumer, read: Sequence[Poll]) -> bool:
        """Whether the outcome is known."""
        offsets = [
            TopicPartition(
                self._topic, int(poll.partition.rpartition("-")[2]), poll.records[-1][0] + 1
            )
            for poll in read
        ]
        began = time.monotonic_ns()
        outcomes = dict.fromkeys((one.partition for one in offsets), Outcome.UNKNOWN)
        try:
            committed: Any = consumer.commit(offsets=offsets, asynchronous=False)
            for one in committed:
                outcomes[one.partition] = _outcome(one.error)
        except KafkaException as failure:
            outcomes = dict.fromkeys(outcomes, _outcome(failure.args[0]))
        now = time.monotonic_ns()
        events: list[Event] = [
            Commit(
                process, self._group, f"{self._topic}-{one.partition}", one.offset, began, now,
                outcomes[one.partition],
            )
            for one in offsets
        ]  # fmt: skip
        self._ground.events += events
        return Outcome.UNKNOWN not in outcomes.values()


def _outcome(error: KafkaError | None) -> Outcome:
    if error is None:
        return Outcome.OK
    return Outcome.FAIL if error.code() in REFUSED else Outcome.UNKNOWN


def members(
    ground: Ground, topic: Topic, groups: Sequence[str], dice: Random, count: int = 2
) -> list[Member]:
    """So many places in each group."""
    return [
        Member(ground, topic, group, number, Random(dice.random()))
        for group in groups
        for number in range(count)
    ]


def read_by(events: Sequence[Event], group: str) -> set[str]:
    """Every value that some member of a group has got."""
    return {
        value
        for event in events
        if isinstance(event, Poll) and event.group == group
        for _, value in event.records
    }
