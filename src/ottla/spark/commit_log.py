"""The ledger of a sink, kept in the cluster that the sink writes to.

Owns: the compacted topic `__ottla_sink_commits`, the transaction that writes an entry, the group
offset that points to it, and the requests that end other producers' prepared transactions.
Never: decides (`decisions`), nor in what order things are done (`exactly_once`).

An entry and the offset that points to it are written in one transaction, so the pointer is never
wrong: finding the last decision takes two questions, however long the topic is. A pointer that has
expired is made up for by reading the topic. Its format: docs/formats/sink-commits.md.

Everything asked here outlasts a restart of the brokers: see `Session.view` and `Session.each` for
what is tried again, within `default.api.timeout.ms`, and `Producer` for what is within
`max.block.ms` and `delivery.timeout.ms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import re2

from ottla.client.admin.group_offsets import list_group_offsets
from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.admin.session import Session
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.admin.transactions import fence_producers, list_transactions
from ottla.client.consumer.fetch.record_decoder import decoder, end_of
from ottla.client.errors import ErrorCode, KafkaError
from ottla.client.partitioners import KeyHash
from ottla.client.producer.aio import Producer
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.model.ids import Offset, TopicPartition
from ottla.spark.commit_decisions import TOPIC, Entry, Sink, from_bytes, to_bytes
from ottla.spark.connection import Connection
from ottla.spark.plan import Span
from ottla.spark.prepared_commit import end_prepared
from ottla.spark.span_fetcher import Fetcher

PARTITIONS: Final = 16
COPIES: Final = 3
DECISION_TIMEOUT_MS: Final = 10_000
"""Of a decision that nobody ends: its driver died. Others wait for it no longer than this."""
READ_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True)
class StoredCommitLog:
    """The book of one sink."""

    sink: Sink
    connection: Connection
    client: Mapping[str, str]

    @property
    def _session(self) -> Session:
        return self.connection.session

    async def read(self) -> Entry | None:
        """What the ledger says; None if it says nothing."""
        tp = await self._place()
        told = await list_group_offsets(self._session, self.sink.group, [tp], require_stable=True)
        pointer = told.all().get(tp)
        if pointer is not None:
            # Committed with the entry: whatever other transactions are open, it may be read.
            found = await self._scan(tp, pointer.offset, pointer.offset + 1, committed=False)
            if found is not None:
                return found
        return await self._search(tp)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[HeldCommitLog]:
        """Fence everybody else who would write, then look what it says."""
        tp = await self._place()
        async with Producer(
            config=self.client,
            transactional_id=self.sink.fence,
            transaction_timeout_ms=DECISION_TIMEOUT_MS,
        ) as producer:
            await producer.init_transactions()
            yield HeldCommitLog(producer, self.sink, tp, await self.read())

    async def commit(self, listed: Sequence[PreparedTransaction]) -> None:
        """End transactions as decided. One that has ended already was ended so."""
        async with asyncio.TaskGroup() as tasks:
            for each in listed:
                tasks.create_task(end_prepared(self._session, each))

    async def abort(self, ids: Sequence[str]) -> None:
        """End transactions that will never be decided."""
        (await fence_producers(self._session, ids)).all()

    async def open_transactions(self) -> list[str]:
        pattern = f"{re2.escape(self.sink.fence)}-.*"
        found = await list_transactions(self._session, states=["Ongoing"], pattern=pattern)
        return [each.id for each in found]

    async def _place(self) -> TopicPartition:
        """The partition of this sink's entries; the topic is made if there is none."""
        cluster = self._session.cluster
        view = cluster.metadata.topics.get(TOPIC)
        if view is None:
            view = (await self._session.view([TOPIC])).topics.get(TOPIC)
        if view is None:
            await _make_topic(self._session)
            view = await cluster.topic(TOPIC, timeout_ms=READ_TIMEOUT_MS)
        count = min(len(view.partitions), PARTITIONS)
        return TopicPartition(TOPIC, KeyHash(count)(self.sink.key))

    async def _search(self, tp: TopicPartition) -> Entry | None:
        """The last entry of this sink, found by reading all there are.

        Up to the end as it is now, which includes everything a fenced decision may have written:
        transactions of others that are still open are waited for.
        """
        ends = (await list_offsets(self._session, {tp: OffsetSpec.LATEST})).all()
        starts = (await list_offsets(self._session, {tp: OffsetSpec.EARLIEST})).all()
        return await self._scan(tp, starts[tp].offset or 0, ends[tp].offset or 0, committed=True)

    async def _scan(
        self, tp: TopicPartition, start: Offset, end: Offset, *, committed: bool
    ) -> Entry | None:
        fetcher = Fetcher(
            self.connection,
            Span(tp, start, end),
            read_committed=committed,
            fail_on_data_loss=False,
            timeout_ms=READ_TIMEOUT_MS,
        )
        found: Entry | None = None
        at = start
        while at < end:
            chunk = await fetcher.fetch(at)
            if chunk is None:
                break
            rows = decoder()(
                chunk.fetched.records, chunk.start, chunk.fetched.aborted, check_crc=True
            ).rows
            for offset, key, value in zip(rows.offsets, rows.keys, rows.values, strict=True):
                if key == self.sink.key and offset < end:
                    found = None if value is None else from_bytes(value)
            at = max(end_of(chunk.fetched.records)[0], at + 1)
        return found


@dataclass(frozen=True)
class HeldCommitLog:
    """A turn at writing; `Fenced` once somebody else has one."""

    producer: Producer
    sink: Sink
    place: TopicPartition
    entry: Entry | None

    async def write(self, entry: Entry | None) -> None:
        """Write an entry and the pointer to it, both or none; None forgets the sink."""
        value = None if entry is None else to_bytes(entry)
        self.producer.begin()
        sent = await self.producer.send(
            self.place.topic, value, key=self.sink.key, partition=self.place.partition
        )
        await self.producer.send_offsets({self.place: (await sent).offset}, self.sink.group)
        await self.producer.commit()


async def _make_topic(session: Session) -> None:
    copies = min(COPIES, len((await session.view()).nodes))
    configs = {"cleanup.policy": "compact", "min.insync.replicas": str(max(copies - 1, 1))}
    wish = NewTopic(TOPIC, PARTITIONS, copies, configs=configs)
    for failure in (await create_topics(session, [wish])).failed.values():
        if not (isinstance(failure, KafkaError) and failure.code is ErrorCode.topic_already_exists):
            raise failure
