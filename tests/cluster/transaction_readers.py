"""Readers beside the transactions of `transacting`, and what nobody but a test looks at.

- `Reader`    reads along, in one isolation
- `Watcher`   what a fetch says of high watermark and last stable offset, and a group's offsets
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from ottla.testing.history import FINAL, Event, OffsetRead, Poll
from tests.cluster.load import name_in
from tests.cluster.transacting import CALL_S, GIVE_UP_S, MOVING, Ground, Topic
from tests.raw_requests import FETCH, Line, fetch_fields


class Reader(threading.Thread):
    """Reads topics along with everybody, in one isolation."""

    def __init__(self, ground: Ground, topics: Sequence[Topic], *, committed: bool) -> None:
        super().__init__(name=f"reader-{committed}", daemon=True)
        self._ground = ground
        self._topics = topics
        self._committed = committed

    def run(self) -> None:
        consumer = reader(self._ground, committed=self._committed)
        consumer.assign([one for topic in self._topics for one in topic.all()])
        while not self._ground.stop.is_set():
            messages = consumer.consume(500, 0.1)
            self._ground.events += polls(self.name, messages, committed=self._committed)
        consumer.close()


class Watcher(threading.Thread):
    """Looks at offsets that no client shows: of logs, and of a group."""

    def __init__(
        self, ground: Ground, topics: Sequence[Topic], groups: Mapping[str, Topic]
    ) -> None:
        super().__init__(name="watcher", daemon=True)
        self._ground = ground
        self._topics = topics
        self._groups = groups

    def run(self) -> None:
        consumers = {group: offset_reader(self._ground, group) for group in self._groups}
        while not self._ground.stop.wait(0.1):
            for group, topic in self._groups.items():
                look_at_offsets(self._ground, consumers[group], group, topic)
            look_at_logs(self._ground, self._topics)
        for consumer in consumers.values():
            consumer.close()


def offset_reader(ground: Ground, group: str) -> Consumer:
    """Not a member: it only asks for what the group has committed."""
    return Consumer(ground.settings(group_id=group, isolation_level="read_committed"))


def look_at_offsets(ground: Ground, consumer: Consumer, group: str, topic: Topic) -> None:
    began = time.monotonic_ns()
    try:
        found = consumer.committed(topic.all(), CALL_S)
    except KafkaException:
        return
    now = time.monotonic_ns()
    ground.events += [
        OffsetRead(
            "watcher", group, f"{one.topic}-{one.partition}", max(-1, one.offset), began, now
        )
        for one in found
    ]


def look_at_logs(ground: Ground, topics: Sequence[Topic]) -> bool:
    """Note where readers of committed data are held up; whether they are nowhere."""
    lines: dict[str, Line] = {}
    with ExitStack() as stack:

        def line_to(address: str) -> Line:
            if address not in lines:
                lines[address] = stack.enter_context(ground.line(address, 5.0))
            return lines[address]

        try:
            return all(
                [
                    _look_at_log(ground, line_to, topic, index)
                    for topic in topics
                    for index in range(topic.partitions)
                ]
            )
        except (OSError, AssertionError):
            return False  # a broker is being mistreated


def _look_at_log(ground: Ground, line_to: Callable[[str], Line], topic: Topic, index: int) -> bool:
    address, epoch = ground.leader_of(topic, index)
    fields = fetch_fields(
        topic, 0, partition=index, partition_max_bytes=1, current_leader_epoch=epoch
    )
    said = line_to(address).ask(FETCH, 12, **{**fields, "isolation_level": 1})
    [part] = said.responses[0].partitions
    if part.high_watermark < 0:
        return False
    seen = Poll(
        "watcher", f"{topic}-{index}", 0, (), part.high_watermark, epoch, True,
        part.last_stable_offset, time.monotonic_ns(),
    )  # fmt: skip
    ground.events.append(seen)
    return bool(part.last_stable_offset == part.high_watermark)


def reader(ground: Ground, *, committed: bool, **more: Any) -> Consumer:
    return Consumer(
        ground.settings(
            group_id="nobody",
            enable_auto_commit=False,
            isolation_level="read_committed" if committed else "read_uncommitted",
            fetch_wait_max_ms=50,
            auto_offset_reset="error",
            check_crcs=True,
            **more,
        )
    )


def polls(process: str, messages: Sequence[Message], *, committed: bool) -> list[Event]:
    found: dict[str, list[tuple[int, str]]] = {}
    for message in messages:
        error = message.error()
        if error is not None:
            assert error.retriable() or error.code() < 0 or error.code() in MOVING, error
            continue
        where = f"{message.topic()}-{message.partition()}"
        name = name_in(message.value() or b"")
        found.setdefault(where, []).append((message.offset() or 0, name))
    return [
        Poll(process, where, 0, tuple(records), committed=committed)
        for where, records in found.items()
    ]


def read_finally(ground: Ground, topics: Sequence[Topic]) -> None:
    """Everything up to the end, once for each isolation, by process `FINAL`."""
    everything = [one for topic in topics for one in topic.all()]
    for committed in (False, True):
        consumer = reader(ground, committed=committed, enable_partition_eof=True)
        consumer.assign(everything)
        left = {(one.topic, one.partition) for one in everything}
        ground.events += [
            Poll(FINAL, f"{topic}-{partition}", 0, (), committed=committed)
            for topic, partition in left
        ]
        deadline = time.monotonic() + GIVE_UP_S
        while left:
            assert time.monotonic() < deadline, f"{left} have no end"
            messages = consumer.consume(5_000, 0.1)
            left -= {(str(one.topic()), one.partition() or 0) for one in messages if _is_end(one)}
            ground.events += polls(FINAL, messages, committed=committed)
        consumer.close()


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF
