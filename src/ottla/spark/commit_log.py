"""The commit log of a sink, stored in the cluster that the sink writes to.

Owns: the compacted topic `__ottla_sink_commits`, the transaction that writes an entry, the group
offset that points to it, and the requests that end other producers' prepared transactions.
Never: decides (`commit_decisions`), nor orders the steps (`exactly_once`).

An entry and the offset that points to it are written in one transaction, so the pointer is never
wrong: finding the last decision takes two requests, however long the topic is. If the pointer has
expired the topic is read. Its format: docs/formats/sink-commits.md.

All requests here survive a restart of the brokers: see `Session.view` and `Session.each` for
what is retried, within `default.api.timeout.ms`, and `Producer` for what is within
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
REPLICATION_FACTOR: Final = 3
DECISION_TIMEOUT_MS: Final = 10_000
"""Timeout of a decision whose driver died. Others wait for it no longer than this."""
READ_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True)
class StoredCommitLog:
    """The commit log of one sink."""

    sink: Sink
    connection: Connection
    client: Mapping[str, str]

    @property
    def _session(self) -> Session:
        return self.connection.session

    async def read(self) -> Entry | None:
        """The last entry of the sink; None if there is none."""
        tp = await self._partition()
        offsets = await list_group_offsets(
            self._session, self.sink.group, [tp], require_stable=True
        )
        pointer = offsets.all().get(tp)
        if pointer is not None:
            # Committed with the entry: whatever other transactions are open, it may be read.
            entry = await self._scan(tp, pointer.offset, pointer.offset + 1, committed=False)
            if entry is not None:
                return entry
        return await self._search(tp)

    @asynccontextmanager
    async def acquire(self, *, is_new: bool = False) -> AsyncIterator[HeldCommitLog]:
        """Fence all other writers, then read the last entry; of a new sink there is none."""
        tp = await self._partition()
        async with Producer(
            config=self.client,
            transactional_id=self.sink.fence,
            transaction_timeout_ms=DECISION_TIMEOUT_MS,
        ) as producer:
            await producer.init_transactions()
            entry = None if is_new else await self.read()
            yield HeldCommitLog(producer, self.sink, tp, entry)

    async def commit(self, listed: Sequence[PreparedTransaction]) -> None:
        """Commit transactions as decided; one that has ended already was committed."""
        async with asyncio.TaskGroup() as tasks:
            for transaction in listed:
                tasks.create_task(end_prepared(self._session, transaction))

    async def abort(self, ids: Sequence[str]) -> None:
        """End transactions that will never be decided."""
        (await fence_producers(self._session, ids)).all()

    async def open_transactions(self) -> list[str]:
        pattern = f"{re2.escape(self.sink.fence)}-.*"
        listings = await list_transactions(self._session, states=["Ongoing"], pattern=pattern)
        return [listing.id for listing in listings]

    async def _partition(self) -> TopicPartition:
        """The partition of this sink's entries; creates the topic if needed."""
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
        end = await self._offset(tp, OffsetSpec.LATEST)
        start = await self._offset(tp, OffsetSpec.EARLIEST)
        return await self._scan(tp, start, end, committed=True)

    async def _offset(self, tp: TopicPartition, spec: OffsetSpec) -> Offset:
        """The topic may be new, and not known to every broker: another sink has just made it."""
        listed = (await list_offsets(self._session, {tp: spec}, exists=True)).one()
        return listed.offset or 0

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
        entry: Entry | None = None
        offset_next = start
        while offset_next < end:
            chunk = await fetcher.fetch(offset_next)
            if chunk is None:
                break
            rows = decoder()(
                chunk.fetched.records, chunk.start, chunk.fetched.aborted, check_crc=True
            ).rows
            for offset, key, value in zip(rows.offsets, rows.keys, rows.values, strict=True):
                if key == self.sink.key and offset < end:
                    entry = None if value is None else from_bytes(value)
            offset_next = max(end_of(chunk.fetched.records)[0], offset_next + 1)
        return entry


@dataclass(frozen=True)
class HeldCommitLog:
    """The right to write an entry; `Fenced` once another writer has acquired it."""

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
    copies = min(REPLICATION_FACTOR, len((await session.view()).nodes))
    configs = {"cleanup.policy": "compact", "min.insync.replicas": str(max(copies - 1, 1))}
    topic = NewTopic(TOPIC, PARTITIONS, copies, configs=configs)
    for failure in (await create_topics(session, [topic])).failed.values():
        if not (isinstance(failure, KafkaError) and failure.code is ErrorCode.topic_already_exists):
            raise failure
