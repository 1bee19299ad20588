"""Groups whose members come, go, crash and come back while records keep arriving.

Owns: the hosts (processes of `members/`), a producer, and the story they play in: from one member
to eight, two of them killed, two leaving, two coming back. Every strategy has a group of its own,
and all groups play at once: most of the time each only waits for a session to end.
Never: judges; the history it returns does.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

from ottla.testing.history import (
    FINAL,
    Event,
    Fault,
    OffsetRead,
    Outcome,
    Owns,
    Poll,
    Send,
    read,
)
from tools import kafka_cache

PARTITIONS: Final = 8
WAIT_S: Final = 90.0
PAUSE_S: Final = 0.01
LOADED_S: Final = 0.2
"""How long a group that has settled works before the next change."""
SESSION_MS: Final = 30_000
"""How long a member may be silent: on a busy machine none that lives is taken for dead."""
DOOMED_MS: Final = 3_000
"""The same of those who are killed, so that they are soon missed."""
JAVA: Final = Path(__file__).parent / "java" / "GroupHost.java"


def command_of(client: str) -> list[str]:
    """How a host of this client is started; Missing where Java is."""
    if client.startswith("java"):
        kind = "clients" if client == "java-4" else "clients-3.9"
        return kafka_cache.java(kafka_cache.compiled(kind, [JAVA]), "GroupHost")
    module = client.replace("-kafka", "").replace("-", "_") + "_host"
    return [sys.executable, "-m", f"tests.interop.members.{module}"]


class Host:
    """One process with members in it."""

    def __init__(self, client: str, bootstrap: str, book: Path, session_ms: int) -> None:
        self._book = book
        self._java = client.startswith("java")
        self._process = subprocess.Popen(
            [*command_of(client), bootstrap, str(book), str(session_ms)],
            stdin=subprocess.PIPE,
            text=True,
        )

    def join(self, name: str, group: str, topic: str, strategy: str) -> None:
        self._say("join", name, group, topic, strategy)

    def leave(self, name: str) -> None:
        self._say("leave", name)

    def kill(self) -> list[Event]:
        """`kill -9`; with its members goes what they had."""
        self._process.kill()
        self._process.communicate()
        died_ns = time.monotonic_ns()
        events = read(self._book)
        held: dict[tuple[str, str, str], bool] = {}
        for event in events:
            if isinstance(event, Owns):
                held[event.process, event.group, event.partition] = event.gained
        dead = [Owns(*who, died_ns, False) for who, gained in held.items() if gained]
        return [*events, *dead, Fault("kill -9 of members", died_ns)]

    def close(self) -> list[Event]:
        self._process.communicate(timeout=60)
        return read(self._book)

    def give_up(self) -> None:
        """The story went wrong: have it say where its threads are, and end it."""
        if self._process.poll() is None:
            # Java says it on SIGQUIT.
            self._process.send_signal(signal.SIGQUIT if self._java else signal.SIGUSR1)
            time.sleep(LOADED_S)
            self._process.kill()
        self._process.communicate()

    def _say(self, *words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()


def play(client: str, strategies: Sequence[str], bootstrap: str, folder: Path) -> list[Event]:
    """The whole story, and what everybody saw of it."""
    topics = {strategy: f"{client}-{strategy}" for strategy in strategies}
    story = Story(bootstrap, topics)
    story.make_topics()
    with loaded(bootstrap, list(topics.values())) as load:
        lasting = Host(client, bootstrap, folder / f"{client}-lasting.jsonl", SESSION_MS)
        doomed = Host(client, bootstrap, folder / f"{client}-doomed.jsonl", DOOMED_MS)
        try:
            story.grow(lasting, ["m1"], 1)
            story.grow(lasting, ["m2", "m3"], 3)
            story.grow(lasting, ["m4", "m5", "m6"], 6)
            story.grow(doomed, ["d1", "d2"], 8)
            events = doomed.kill()
            story.settle(6)
            story.shrink(lasting, ["m2", "m3"], 4)
            story.grow(lasting, ["m7", "m8"], 6)
        except BaseException:
            lasting.give_up()
            doomed.give_up()
            raise
    story.catch_up()
    events += [*lasting.close(), *load, *story.looks]
    return [*events, *story.read_for_the_last_time()]


class Story:
    """The groups of one client, one for each strategy, that live through the same."""

    def __init__(self, bootstrap: str, topics: dict[str, str]) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self.looks: list[Event] = []

    def make_topics(self) -> None:
        wanted = [NewTopic(topic, PARTITIONS, 1) for topic in self._topics.values()]
        for made in self._admin.create_topics(wanted).values():
            made.result(WAIT_S)

    def grow(self, host: Host, names: Sequence[str], size: int) -> None:
        for strategy, topic in self._topics.items():
            for name in names:
                host.join(f"{strategy}.{name}", topic, topic, strategy)
        self.settle(size)

    def shrink(self, host: Host, names: Sequence[str], size: int) -> None:
        for strategy in self._topics:
            for name in names:
                host.leave(f"{strategy}.{name}")
        self.settle(size)

    def settle(self, size: int) -> None:
        """Until each group is stable with so many members, and each has something to do."""
        deadline = time.monotonic() + WAIT_S
        groups = list(self._topics.values())
        while True:
            described = self._admin.describe_consumer_groups(groups)
            found = [one.result(WAIT_S) for one in described.values()]
            if all(one.state is ConsumerGroupState.STABLE for one in found) and all(
                len([m for m in one.members if m.assignment.topic_partitions]) == size
                for one in found
            ):
                break
            shares = {
                one.group_id: (one.state, [len(m.assignment.topic_partitions) for m in one.members])
                for one in found
            }
            assert time.monotonic() < deadline, f"not {size} members with a share: {shares}"
            time.sleep(0.05)
        self.look()
        time.sleep(LOADED_S)

    def look(self) -> dict[str, list[int]]:
        """The committed offsets of each group, which the history remembers."""
        found: dict[str, list[int]] = {}
        for topic in self._topics.values():
            consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": topic})
            began = time.monotonic_ns()
            offsets = consumer.committed([At(topic, one) for one in range(PARTITIONS)], WAIT_S)
            now = time.monotonic_ns()
            consumer.close()
            found[topic] = [max(-1, one.offset) for one in offsets]
            self.looks += [
                OffsetRead("look", topic, f"{topic}-{at}", offset, began, now)
                for at, offset in enumerate(found[topic])
            ]
        return found

    def catch_up(self) -> None:
        """Until everything that was written has been read and committed."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "nobody"})
        ends = {
            topic: [consumer.get_watermark_offsets(At(topic, one))[1] for one in range(PARTITIONS)]
            for topic in self._topics.values()
        }
        consumer.close()
        deadline = time.monotonic() + WAIT_S
        while (found := self.look()) != ends:
            assert time.monotonic() < deadline, f"committed {found} of {ends}"
            time.sleep(0.1)

    def read_for_the_last_time(self) -> list[Event]:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "nobody",
                "enable.partition.eof": True,
            }
        )
        left = {(topic, one) for topic in self._topics.values() for one in range(PARTITIONS)}
        consumer.assign([At(topic, one, 0) for topic, one in left])
        events: list[Event] = []
        while left:
            for message in consumer.consume(10_000, 0.1):
                error = message.error()
                where = (str(message.topic()), message.partition() or 0)
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    left.discard(where)
                    continue
                records = ((message.offset() or 0, (message.value() or b"").decode()),)
                events.append(Poll(FINAL, f"{where[0]}-{where[1]}", 0, records))
        consumer.close()
        return events


@contextmanager
def loaded(bootstrap: str, topics: Sequence[str]) -> Iterator[list[Event]]:
    """Records keep arriving in every partition while in this block."""
    sent: list[Event] = []
    over = threading.Event()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": "all"})

    def told(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        where = f"{message.topic()}-{message.partition()}"
        name, now = (message.value() or b"").decode(), time.monotonic_ns()
        sent.append(Send("load", where, name, now, now, Outcome.OK, message.offset() or 0))

    def run() -> None:
        number = 0
        while not over.wait(PAUSE_S):
            for topic in topics:
                producer.produce(
                    topic, str(number), partition=number % PARTITIONS, on_delivery=told
                )
            producer.poll(0)
            number += 1
        producer.flush(WAIT_S)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join(WAIT_S)
