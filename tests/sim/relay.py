"""Exactly-once pipelines: consume, transform, produce, with the offsets inside the transaction.

Owns a source topic that a feeder fills, and groups of workers, each with a sink topic. A worker is
what a user of `ottla.client` would write: it polls, sends, commits offsets with its transaction,
and begins anew with a new producer and a new consumer when anything fails. It writes down all that
it did for the history to judge.

At the end each group must stand behind the last record of the source: a transaction that never
ends holds its group up for ever, and is reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from ottla.client.consumer.record import Record
from ottla.client.producer.delivery import Delivery
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import TopicPartition
from ottla.testing.history import Commit, Ended, OffsetRead, Outcome, Pipe, ProducerInit, Send
from tests.sim.admin import NewTopic
from tests.sim.book import Book
from tests.sim.client import RETRIABLE, Client
from tests.sim.consumer import LATEST, Consumer, Tastes
from tests.sim.ottla_client import SimConsumer, SimProducer

OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
SOURCE: Final = NewTopic("source", 2)
PATIENCE_S: Final = 90.0
"""Virtual seconds after the last record of the source within which every group has to be through:
longer than any session and any transaction lasts."""
CLASSIC: Final[dict[str, Any]] = {
    "session_timeout_ms": 6_000,
    # A JoinGroup waits this long on a connection whose other end lost its power.
    "max_poll_interval_ms": 10_000,
}
LATE_S: Final = 3.0
"""After which nothing of a producer that gave up can still arrive."""
TIMEOUT_MS: Final = 20_000
OK, UNKNOWN = Outcome.OK, Outcome.UNKNOWN
NOT_YET: Final = RETRIABLE | {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
    ErrorCode.unstable_offset_commit,
}


@dataclass(frozen=True, slots=True)
class Relaying:
    """How the pipelines of one simulation work."""

    groups: int = 2
    workers: int = 1
    """Of each group."""
    records: int = 40
    protocol: str = "classic"
    aborts: float = 0.1
    pause_s: float = 0.1
    crashes: float = 0.1
    """How likely a worker ends in the middle of a transaction, and another one takes its place."""

    @property
    def sinks(self) -> list[NewTopic]:
        return [NewTopic(f"sink{number}", SOURCE.partitions) for number in range(self.groups)]

    @property
    def topics(self) -> list[NewTopic]:
        return [SOURCE, *self.sinks]


class Crashed(Exception):
    """A worker ended without a word to anybody."""


class Pipelines:
    """The feeder, all workers, and the wait for the last of them."""

    def __init__(self, client: Client, book: Book, relaying: Relaying) -> None:
        self._client = client
        self._book = book
        self._relaying = relaying
        self._dice = client.dice
        self._ends = [0] * SOURCE.partitions

    async def run(self) -> None:
        relaying = self._relaying
        workers = []
        for number, sink in enumerate(relaying.sinks):
            self._book.write(Pipe(SOURCE.name, sink.name))
            for of_group in range(relaying.workers):
                name = f"relay{number}.{of_group}"
                client = self._client.named(name)
                workers.append(Worker(client, self._book, sink.name, relaying))
        tasks = [asyncio.get_running_loop().create_task(worker.run()) for worker in workers]
        await self._feed()
        await self._find_ends()
        try:
            async with asyncio.timeout(PATIENCE_S):
                for sink in relaying.sinks:
                    await self._until_through(sink.name)
        except TimeoutError:
            left = f"{sink.name} does not get through {self._ends} in {PATIENCE_S:.0f} s"
            self._book.complain("hangs", sink.name, left)
            for task in tasks:
                task.cancel()
        for worker in workers:
            worker.finish = True
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)

    async def look_again(self) -> None:
        """After the last restart: the groups stand where they stood, with nothing pending."""
        for sink in self._relaying.sinks:
            await self._until_through(sink.name)

    async def _feed(self) -> None:
        """Each record is sent once; whether an unknown one was written shows in the end."""
        sent = 0
        while sent < self._relaying.records:
            dice = Random(self._dice.random())
            producer = SimProducer(
                self._client.clock,
                dice,
                **self._client.options,
                delivery_timeout_ms=20_000,
            )
            async with producer:
                while sent < self._relaying.records:
                    sent += 1
                    if not await self._feed_one(producer, f"s{sent}"):
                        break

    async def _find_ends(self) -> None:
        """Also of records whose outcome the feeder does not know."""
        await asyncio.sleep(LATE_S)
        reader = Consumer(self._client, SOURCE.all(), self._book, Tastes())
        for tp in SOURCE.all():
            while True:
                try:
                    self._ends[tp.partition] = await reader.bound(tp, LATEST)
                    break
                except OSError:
                    await self._client.back_off()

    async def _feed_one(self, producer: SimProducer, name: str) -> bool:
        partition, began = self._dice.randrange(SOURCE.partitions), self._book.now_ns
        outcome, offset = UNKNOWN, -1
        try:
            delivery = await producer.send(SOURCE.name, name.encode(), partition=partition)
            offset = (await delivery).offset
            outcome = OK
        except (KafkaError, OSError):
            pass
        where, now = f"{SOURCE.name}-{partition}", self._book.now_ns
        self._book.write(Send("feeder", where, name, began, now, outcome, offset))
        await asyncio.sleep(self._dice.random() * self._relaying.pause_s)
        return outcome is OK

    async def _until_through(self, group: str) -> None:
        """Until the group's stable offsets are behind everything that was written."""
        while not await self._is_through(group):
            await self._client.back_off()

    async def _is_through(self, group: str) -> bool:
        began = self._book.now_ns
        keys = {"key_type": 0, "coordinator_keys": [group]}
        await self._client.ask_until_answered(FIND_COORDINATOR, 4, keys)
        indexes = list(range(SOURCE.partitions))
        topics = [{"name": SOURCE.name, "partition_indexes": indexes}]
        fields = {"groups": [{"group_id": group, "topics": topics}], "require_stable": True}
        reply = await self._client.ask_until_answered(OFFSET_FETCH, 8, fields)
        [told] = reply.groups
        codes = {told.error_code} | {
            part.error_code for topic in told.topics for part in topic.partitions
        }
        for code in codes - {ErrorCode.none}:
            if code not in NOT_YET:
                self._book.complain("refusal", group, f"{code!r}")
        if codes != {ErrorCode.none}:
            return False
        now = self._book.now_ns
        through = True
        for part in told.topics[0].partitions:
            at, index = part.committed_offset, part.partition_index
            self._book.write(
                OffsetRead("pipelines", group, f"{SOURCE.name}-{index}", at, began, now)
            )
            through = through and max(at, 0) >= self._ends[index]
        return through


class Worker:
    """One member of a group, in many lives."""

    def __init__(self, client: Client, book: Book, sink: str, relaying: Relaying) -> None:
        self._name = client.name
        self._client = client
        self._clock = client.clock
        self._dice = client.dice
        self._book = book
        self._sink = sink
        self._relaying = relaying
        self._lives = 0
        self.finish = False

    async def run(self) -> None:
        while not self.finish:
            self._lives += 1
            with suppress(KafkaError, OSError, UserError, Crashed):
                await self._live(f"{self._name}.{self._lives}")
            await self._client.back_off()

    async def _live(self, process: str) -> None:
        classic = self._relaying.protocol == "classic"
        consumer = SimConsumer(
            self._clock,
            Random(self._dice.random()),
            SOURCE.name,
            **self._client.options,
            group_id=self._sink,
            group_protocol=self._relaying.protocol,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            max_poll_records=self._dice.choice([1, 5, 100]),
            default_api_timeout_ms=20_000,
            **(CLASSIC if classic else {}),
        )
        producer = SimProducer(
            self._clock,
            Random(self._dice.random()),
            **self._client.options,
            transactional_id=self._name,
            transaction_timeout_ms=TIMEOUT_MS,
            delivery_timeout_ms=10_000,
            max_block_ms=20_000,
        )
        async with producer:
            await self._init(producer, process)
            async with consumer:
                try:
                    await self._work(process, producer, consumer)
                finally:
                    await consumer.close(1.0)

    async def _work(self, process: str, producer: SimProducer, consumer: SimConsumer) -> None:
        count = 0
        while not self.finish:
            records = await consumer.poll(0.5)
            if records:
                count += 1
                life = Life(self._book, process, f"{process}.{count}", producer)
                await self._relay(life, consumer, records)

    async def _init(self, producer: SimProducer, process: str) -> None:
        began = self._book.now_ns
        await producer.init_transactions()
        now = self._book.now_ns
        self._book.write(ProducerInit(process, self._name, began, now, OK, TIMEOUT_MS))

    async def _relay(
        self, life: Life, consumer: SimConsumer, records: Sequence[Record[bytes, bytes]]
    ) -> None:
        life.producer.begin()
        try:
            await life.send_all(self._sink, records)
            await life.send_offsets(self._sink, records, consumer.group_metadata())
        except (KafkaError, OSError):
            await life.end(commit=False)
            raise
        if self._dice.random() < self._relaying.crashes:
            raise Crashed
        commit = self._dice.random() >= self._relaying.aborts
        await life.end(commit=commit)
        if not commit:
            for record in reversed(records):
                consumer.seek(TopicPartition(record.topic, record.partition), record.offset)


class Life:
    """One transaction of one life of a worker, as it is written down."""

    def __init__(self, book: Book, process: str, name: str, producer: SimProducer) -> None:
        self.producer = producer
        self._book = book
        self._process = process
        self._name = name

    async def send_all(self, sink: str, records: Sequence[Record[bytes, bytes]]) -> None:
        began = self._book.now_ns
        sent: list[tuple[str, str, Delivery | None]] = []
        try:
            for record in records:
                name = f"{(record.value or b'').decode()}@{self._name}"
                where = f"{sink}-{record.partition}"
                sent.append((where, name, None))
                taken = await self.producer.send(sink, name.encode(), partition=record.partition)
                sent[-1] = (where, name, taken)
            for _, _, delivery in sent:
                assert delivery is not None
                await delivery
        finally:
            for where, name, delivery in sent:
                self._book.write(self._heard(where, name, began, delivery))

    def _heard(self, where: str, name: str, began: int, delivery: Delivery | None) -> Send:
        known = delivery is not None and delivery.done() and delivery.exception() is None
        offset = delivery.result().offset if known and delivery is not None else -1
        outcome = OK if known else UNKNOWN
        now = self._book.now_ns
        return Send(self._process, where, name, began, now, outcome, offset, transaction=self._name)

    async def send_offsets(
        self, group: str, records: Sequence[Record[bytes, bytes]], metadata: Any
    ) -> None:
        began, outcome = self._book.now_ns, UNKNOWN
        offsets = {
            TopicPartition(record.topic, record.partition): record.offset + 1 for record in records
        }
        try:
            await self.producer.send_offsets(offsets, metadata)
            outcome = OK
        finally:
            now = self._book.now_ns
            for tp, offset in offsets.items():
                self._book.write(
                    Commit(self._process, group, str(tp), offset, began, now, outcome, self._name)
                )

    async def end(self, *, commit: bool) -> None:
        began, outcome = self._book.now_ns, UNKNOWN
        try:
            await (self.producer.commit() if commit else self.producer.abort())
            outcome = OK
        finally:
            now = self._book.now_ns
            self._book.write(Ended(self._process, self._name, commit, began, now, outcome))
