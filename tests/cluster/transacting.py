"""Transactional producers and a pipeline under which a broker is mistreated.

Owns: client threads of librdkafka, and the events of `ottla.testing.history` that they write.
Never: touches the broker's process.

- `Writer`    transactions over all partitions of one topic; some are aborted, some abandoned by a
              life that ends, whose successor fences it while it tries to commit
- `Copier`    a member of a group that copies a topic to another: consume, transform, produce
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from ottla.testing.history import (
    Commit,
    Ended,
    Event,
    Outcome,
    ProducerInit,
    Send,
)
from tests.cluster.load import connection, name_in, value_of
from tests.raw_requests import Line

CALL_S: Final = 10.0
GIVE_UP_S: Final = 120.0
HANGS_S: Final = 2.0
"""After which a call of librdkafka that ignores its timeout is given up, on a single broker."""
TIMEOUT_MS: Final = 60_000
SESSION_MS: Final = 6_000
MOVING: Final = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""librdkafka reports them, and tries again."""
OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


class Topic(str):
    """A topic's name, and how many partitions it has."""

    partitions: int

    def __new__(cls, name: str, partitions: int) -> Topic:
        topic = super().__new__(cls, name)
        topic.partitions = partitions
        return topic

    def all(self) -> list[TopicPartition]:
        return [TopicPartition(self, index, 0) for index in range(self.partitions)]


class Ground:
    """What all of them share: the brokers' addresses, the history, and the word to stop."""

    def __init__(
        self,
        address: str,
        hangs_s: float = HANGS_S,
        leader_of: Callable[[str, int], tuple[str, int]] | None = None,
    ) -> None:
        self.address = address
        self.hangs_s = hangs_s
        self.leader_of = leader_of or (lambda topic, partition: (address, -1))
        """Where a partition is led, and in which epoch, if that is known."""
        self.line: Callable[[str, float], Line] = Line
        """Connects to one broker, with a login where it wants one."""
        self.events: list[Event] = []
        self.failures: list[str] = []
        self.stop = threading.Event()
        self._ended: list[Ended] = []  # asked for often, while there are ever more events

    def settings(self, **more: Any) -> dict[str, Any]:
        named = {key.replace("_", "."): value for key, value in more.items()}
        return {**connection(self.address), "log_level": 0, **named}

    def ended(self, *, commit: bool | None = None) -> int:
        """How many transactions have ended, as their producers know."""
        return sum(commit in (None, ended.commit) for ended in list(self._ended))

    def write_end(self, ended: Ended) -> None:
        self.events.append(ended)
        if ended.outcome is OK:
            self._ended.append(ended)


class Gone(Exception):
    """This life of a producer is over: it was fenced, or told that it cannot go on."""


class Life:
    """One life of a transactional producer, and everything it says of itself."""

    def __init__(self, ground: Ground, id: str, number: int) -> None:
        self.process = f"{id}.{number}"
        self._ground = ground
        self._id = id
        self._count = itertools.count()
        self._producer = Producer(
            ground.settings(
                transactional_id=id,
                linger_ms=1,
                retry_backoff_ms=20,
                transaction_timeout_ms=TIMEOUT_MS,
            )
        )
        self.transaction = ""
        self._unheard: dict[str, Send] = {}
        """What was sent, as far as it is known now."""

    def begin(self) -> None:
        began = time.monotonic_ns()
        self._insist(lambda: self._producer.init_transactions(CALL_S))
        now = time.monotonic_ns()
        self._ground.events.append(ProducerInit(self.process, self._id, began, now, OK, TIMEOUT_MS))

    def open(self) -> None:
        self.transaction = f"{self.process}.{next(self._count)}"
        self._producer.begin_transaction()

    def send(self, topic: Topic, partition: int, name: str, size: int) -> None:
        where, now = f"{topic}-{partition}", time.monotonic_ns()
        sent = Send(self.process, where, name, now, now, UNKNOWN, transaction=self.transaction)
        self._unheard[name] = sent

        def told(error: KafkaError | None, message: Message) -> None:
            offset = message.offset() if error is None else None
            outcome, at = (UNKNOWN, -1) if offset is None else (OK, offset)
            heard = replace(sent, completed_ns=time.monotonic_ns(), outcome=outcome, offset=at)
            self._ground.events.append(heard)
            self._unheard.pop(name, None)

        value = value_of(name, size)
        self._producer.produce(topic, value, partition=partition, on_delivery=told)
        self._producer.poll(0)

    def send_offsets(self, group: str, at: Sequence[TopicPartition], metadata: Any) -> None:
        began, outcome = time.monotonic_ns(), UNKNOWN
        try:
            self._within_reason(
                lambda: self._producer.send_offsets_to_transaction(list(at), metadata, CALL_S)
            )
            outcome = OK
        finally:
            now = time.monotonic_ns()
            self._ground.events += [
                Commit(
                    self.process, group, f"{one.topic}-{one.partition}", one.offset, began, now,
                    outcome, self.transaction,
                )
                for one in at
            ]  # fmt: skip

    def flush(self) -> None:
        self._producer.flush(GIVE_UP_S)

    def over(self) -> None:
        """Of what it has not heard yet, it never will."""
        self._ground.events += self._unheard.values()
        self._unheard.clear()

    def end(self, commit: bool) -> bool:
        """Commit or abort; where a commit is refused, abort. Whether it was committed."""
        began, outcome = time.monotonic_ns(), UNKNOWN
        call = self._producer.commit_transaction if commit else self._producer.abort_transaction
        try:
            self._insist(lambda: call(CALL_S))
            outcome = OK
        except MustAbort:
            pass
        finally:
            now = time.monotonic_ns()
            self._ground.write_end(
                Ended(self.process, self.transaction, commit, began, now, outcome)
            )
        if outcome is not OK:
            self.end(commit=False)
            return False
        return commit

    def _insist(self, call: Callable[[], object]) -> None:
        """Until it is done, or can never be; librdkafka says which calls may be tried again."""
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            try:
                call()
                return
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                if error.txn_requires_abort():
                    raise MustAbort(str(error)) from None
                if not error.retriable() or error.fatal():
                    raise Gone(f"{self.process}: {error}") from None
                if time.monotonic() > deadline:
                    self._ground.failures.append(f"{self.process}: {error}")
                    raise Gone(str(error)) from None

    def _within_reason(self, call: Callable[[], object]) -> None:
        """For a call that may not come back when the broker dies under it.

        confluentinc/librdkafka issues 5456 and 5511: its timeout is not looked at. Such a life is
        left behind, as a user would have to.
        """
        raised: list[Exception] = []

        def run() -> None:
            try:
                self._insist(call)
            except (Gone, MustAbort) as failure:
                raised.append(failure)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self._ground.hangs_s)
        if thread.is_alive():
            raise Gone(f"{self.process} does not reply")
        for failure in raised:
            raise failure


class MustAbort(Exception):
    """The transaction cannot be committed; the producer can go on once it is aborted."""


class Writer(threading.Thread):
    """Transactions over all partitions of a topic, by one transactional id in many lives."""

    def __init__(self, ground: Ground, topic: Topic, id: str, dice: Random) -> None:
        super().__init__(name=id, daemon=True)
        self._ground = ground
        self._topic = topic
        self._id = id
        self._dice = dice
        self.fenced = 0
        """Lives that tried to go on after their successor had begun, and were refused."""

    def run(self) -> None:
        before: Life | None = None
        for number in itertools.count():
            life = Life(self._ground, self._id, number)
            try:
                life.begin()
                if before is not None:
                    self._haunt(before)
                while not self._ground.stop.is_set():
                    if not self._one_transaction(life):
                        break  # abandoned, with an open transaction
                else:
                    return
                before = life
            except (Gone, MustAbort):
                before = None
            finally:
                life.over()

    def _haunt(self, zombie: Life) -> None:
        try:
            zombie.end(commit=True)
        except (Gone, MustAbort):
            self.fenced += 1

    def _one_transaction(self, life: Life) -> bool:
        life.open()
        for number in range(self._dice.randint(1, 6)):
            partition = self._dice.randrange(self._topic.partitions)
            name = f"{life.transaction}.{number}"
            life.send(self._topic, partition, name, self._dice.randrange(200))
        fate = self._dice.random()
        if fate < 0.05:
            life.flush()
            return False
        if fate < 0.95:
            life.flush()
        life.end(commit=fate < 0.7)
        return True


def member_settings(ground: Ground, group: str, protocol: str) -> dict[str, Any]:
    """Of a member that commits when it wants to."""
    session = {} if protocol == "consumer" else {"session_timeout_ms": SESSION_MS}
    return ground.settings(
        group_id=group,
        group_protocol=protocol,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_wait_max_ms=50,
        **session,
    )


class Copier(threading.Thread):
    """A member of a group that copies what it reads, with its offsets, in transactions."""

    def __init__(
        self,
        ground: Ground,
        source: Topic,
        sink: Topic,
        id: str,
        dice: Random,
        *,
        protocol: str = "classic",
    ) -> None:
        super().__init__(name=id, daemon=True)
        self._protocol = protocol
        self._ground = ground
        self._source = source
        self._sink = sink
        self._id = id
        self._dice = dice
        self.finish = threading.Event()

    def run(self) -> None:
        for number in itertools.count():
            life, consumer = Life(self._ground, self._id, number), self._consumer()
            try:
                life.begin()
                consumer.subscribe([self._source])
                while not self.finish.is_set():
                    self._copy(life, consumer)
                return
            except Gone:
                continue
            finally:
                life.over()
                consumer.close()

    def _consumer(self) -> Consumer:
        settings = member_settings(self._ground, self._source, self._protocol)
        return Consumer({**settings, "isolation.level": "read_committed"})

    def _copy(self, life: Life, consumer: Consumer) -> None:
        messages = consumer.consume(self._dice.randint(1, 200), 0.05)
        taken = [one for one in messages if not one.error()]
        if not taken:
            return
        life.open()
        try:
            for message in taken:
                name = name_in(message.value() or b"")
                to = (message.partition() or 0) % self._sink.partitions
                life.send(self._sink, to, f"{name}@{life.transaction}", 10)
            after = {(m.topic(), m.partition()): (m.offset() or 0) + 1 for m in taken}
            offsets = [TopicPartition(str(t), p or 0, at) for (t, p), at in after.items()]
            life.send_offsets(self._source, offsets, consumer.consumer_group_metadata())
            life.flush()
            kept = life.end(commit=self._dice.random() < 0.9)
        except MustAbort:
            kept = life.end(commit=False)
        if not kept:
            self._rewind(consumer)

    def _rewind(self, consumer: Consumer) -> None:
        """Back to what the group has committed; it may have lost the partitions meanwhile."""
        while not self.finish.is_set():
            try:
                for one in consumer.committed(consumer.assignment(), CALL_S):
                    one.offset = max(one.offset, 0)
                    consumer.seek(one)
                return
            except KafkaException as failure:
                if not failure.args[0].retriable() and failure.args[0].code() >= 0:
                    raise Gone(str(failure)) from None
