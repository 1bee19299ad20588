"""Producers and a reader under which a broker is mistreated, and the history they write.

Owns: client threads of librdkafka and the events of `ottla.testing.history`. Never: touches the
broker's process.

A value says who sent it, how many came before, and how long it is: a torn one cannot pass.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.testing.history import FINAL, Event, Fault, Outcome, Poll, Retention, Send
from tests.cluster.process import wait_for

SOON: Final = {
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "100",
    "log_level": "2",  # brokers that are down are what is tested, and no news
}
IMPATIENT: Final = {
    "request.timeout.ms": 1000,
    "socket.timeout.ms": 2000,
    "retry.backoff.max.ms": 200,  # the brokers are judged, not a client's back-off of a second
}
"""So that a client leaves a leader that does not answer, within the time of a test."""
DELIVERY_S: Final = 120
LARGEST_BYTES: Final = 500
PAUSE_S: Final = 0.01
"""Between two sends: load enough to be in the middle of something, and not all of two cores."""


class Bootstrap(str):
    """Addresses of brokers, and what librdkafka needs to log in there."""

    login: Mapping[str, Any]

    def __new__(cls, addresses: str, login: Mapping[str, Any]) -> Bootstrap:
        bootstrap = super().__new__(cls, addresses)
        bootstrap.login = login
        return bootstrap


def connection(address: str) -> dict[str, Any]:
    """Settings of a client of librdkafka at brokers that may want a login."""
    login = address.login if isinstance(address, Bootstrap) else {}
    return {"bootstrap.servers": str(address), **SOON, **login}


def value_of(name: str, size: int) -> bytes:
    return f"{name}|{size}|".encode() + b"." * size


def name_in(value: bytes) -> str:
    """The name of a whole value; anything else is reported as it is, and so as a phantom."""
    name, _, rest = value.partition(b"|")
    size, _, padding = rest.partition(b"|")
    whole = size.isdigit() and padding == b"." * int(size)
    return name.decode() if whole else f"torn: {value[:60]!r}"


def create_topic(
    address: str,
    topic: str,
    partitions: int | list[list[int]] = 1,
    *,
    replicas: int = 1,
    **settings: str,
) -> None:
    """`partitions`: how many, each with so many replicas, or the replicas of each."""
    if isinstance(partitions, int):
        new = NewTopic(topic, partitions, replicas)
    else:
        new = NewTopic(topic, len(partitions), replica_assignment=partitions)
    new.config = {name.replace("_", "."): value for name, value in settings.items()}
    admin = AdminClient(connection(address))
    [created] = admin.create_topics([new]).values()
    created.result(30)


class Load:
    """Idempotent producers and one reader of every partition of a topic, while in its block."""

    def __init__(
        self,
        address: str,
        topic: str,
        partitions: int,
        producers: int = 2,
        settings: Mapping[str, object] | None = None,
        pause_s: float = PAUSE_S,
        keys: int = 0,
    ) -> None:
        """`keys`: how many each partition has; 0: records have none. With keys it is compacted."""
        self.events: list[Event] = []
        self.failures: list[str] = []
        self._acknowledged: list[Send] = []  # asked for often, while there are ever more events
        self._address = address
        self._topic = topic
        self._partitions = range(partitions)
        self._settings = settings or {}
        self._pause_s = pause_s
        self._keys = keys
        self._stop = threading.Event()
        self._gave_up = False
        """The test has failed: nobody waits for what is not acknowledged yet."""
        self._threads = [
            threading.Thread(target=self._produce, args=(f"p{number}",))
            for number in range(producers)
        ]
        self._threads.append(threading.Thread(target=self._consume, args=("c0",)))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._gave_up = kind is not None
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def fault(self, name: str) -> None:
        self.events.append(Fault(name, time.monotonic_ns()))

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    def acknowledgements(self, partition: int, since_ns: int = 0) -> list[int]:
        """When records of a partition were acknowledged, in order of time."""
        where = f"{self._topic}-{partition}"
        return sorted(
            send.completed_ns
            for send in list(self._acknowledged)
            if send.partition == where and send.completed_ns > since_ns
        )

    def finish(self) -> list[Event]:
        """After the block: what fresh readers find, and the whole history with it."""
        self.events += read_all(self._address, self._topic, len(self._partitions))
        if self._keys:
            self.events += [
                Retention(f"{self._topic}-{number}", compacted=True) for number in self._partitions
            ]
        return self.events

    def _produce(self, process: str) -> None:
        producer = Producer(
            {
                **connection(self._address),
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "retry.backoff.ms": 20,
                "delivery.timeout.ms": DELIVERY_S * 1000,
                "error_cb": self._on_error,
                **self._settings,
            }
        )
        for number in itertools.count():
            if self._stop.wait(self._pause_s):
                break
            name, partition = f"{process}-{number}", number % len(self._partitions)
            key = f"k{number // len(self._partitions) % self._keys}" if self._keys else ""
            told = self._told(process, name, partition, key)
            value = value_of(name, number * 37 % LARGEST_BYTES)
            producer.produce(self._topic, value, key or None, partition=partition, on_delivery=told)
            producer.poll(0)
        deadline = time.monotonic() + DELIVERY_S
        while len(producer) and not self._gave_up and time.monotonic() < deadline:
            producer.poll(0.1)

    def _told(self, process: str, name: str, partition: int, key: str) -> Any:
        invoked_ns = time.monotonic_ns()

        def told(error: KafkaError | None, message: Message) -> None:
            outcome = Outcome.OK if error is None else Outcome.UNKNOWN
            offset = message.offset() if error is None else None
            where, now_ns = f"{self._topic}-{partition}", time.monotonic_ns()
            at = -1 if offset is None else offset
            send = Send(process, where, name, invoked_ns, now_ns, outcome, at, key)
            self.events.append(send)
            if error is None:
                self._acknowledged.append(send)
            else:
                self.failures.append(f"{name}: {error}")

        return told

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.failures.append(f"fatal: {error}")

    def _consume(self, process: str) -> None:
        consumer = _reader(self._address)
        consumer.assign([TopicPartition(self._topic, one, 0) for one in self._partitions])
        while not self._stop.is_set():
            self.events += _polls(process, consumer.consume(500, 0.1))
        consumer.close()


class GroupReader:
    """One member of a group of librdkafka, which reads and commits while in its block."""

    def __init__(self, address: str, topic: str, protocol: str) -> None:
        """`protocol` of the group: classic or consumer."""
        self.name = f"{protocol}-{topic}"
        self.failures: list[str] = []
        self.read: set[tuple[int, int]] = set()
        """Partition and offset of every record."""
        self.repeated = 0
        self._settings = {
            **connection(address),
            "group.id": self.name,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._consume)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _consume(self) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe([self._topic])
        try:
            while not self._stop.is_set():
                messages = consumer.consume(500, 0.1)
                self._note(messages)
                if messages:
                    consumer.commit(asynchronous=False)
        except KafkaException as failure:
            self.failures.append(str(failure))
        finally:
            consumer.close()

    def _note(self, messages: Sequence[Message]) -> None:
        for message in messages:
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is not None:
                self.failures.append(str(error))
            elif partition is not None and offset is not None:
                self.repeated += (partition, offset) in self.read
                self.read.add((partition, offset))


def read_all(address: str, topic: str, partitions: int) -> list[Event]:
    """Everything below the high watermarks, read anew by process `FINAL`."""
    consumer = _reader(address)
    events: list[Event] = []
    for partition in range(partitions):
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
        consumer.assign([TopicPartition(topic, partition, low)])
        deadline, reached = time.monotonic() + 60, low
        while reached < high:
            assert time.monotonic() < deadline, f"{topic}-{partition}: {reached} of {high}"
            polls = _polls(FINAL, consumer.consume(5000, 0.2))
            events += polls
            reached = max([reached, *(p.records[-1][0] + 1 for p in polls)])
    consumer.close()
    return events


def values(address: str, topic: str, partitions: int = 1) -> list[str]:
    """The names of all records, partition by partition."""
    polls = read_all(address, topic, partitions)
    return [name for poll in polls if isinstance(poll, Poll) for _, name in poll.records]


def produce(address: str, topic: str, names: Sequence[str], size: int = 100, **more: Any) -> None:
    """Send these to partition 0, and see each acknowledged."""
    config = {**connection(address), "acks": "all", **more}
    producer = Producer(config)
    failed: list[KafkaError] = []

    def told(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for name in names:
        producer.produce(topic, value_of(name, size), partition=0, on_delivery=told)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failed, failed[0]


def _reader(address: str) -> Consumer:
    return Consumer(
        {
            **connection(address),
            "group.id": "nobody",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "auto.offset.reset": "error",
        }
    )


def _polls(process: str, messages: Sequence[Message]) -> list[Poll]:
    found: dict[str, list[tuple[int, str]]] = {}
    for message in messages:
        error = message.error()
        if error is not None:
            assert error.retriable() or error.code() < 0, error
            continue
        where = f"{message.topic()}-{message.partition()}"
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert isinstance(value, bytes)
        found.setdefault(where, []).append((offset, name_in(value)))
    return [Poll(process, where, 0, tuple(records)) for where, records in found.items()]


def wait_for_progress(load: Load, records: int = 20) -> None:
    """Until the broker has acknowledged so many more records."""
    before = load.acknowledged
    wait_for(lambda: load.acknowledged > before + records, what="acknowledgements")
