"""Fetching: requests under way to each broker that something is read from.

Owns the tasks and the sessions: one of each for a broker, and a second of each for one whose
replies are large (`selection`). Fetches run ahead of the user: while one chunk of a partition is read
the next one is on its way, and no further. Never decodes a record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from uuid import UUID

from ottla.client.cluster import Cluster, ConnectionLane
from ottla.client.consumer.fetch.buffer import Buffer
from ottla.client.consumer.fetch.chunk import Chunk
from ottla.client.consumer.fetch.partition_responses import (
    ErrorReaction,
    PartitionResponses,
    RequestedPartition,
)
from ottla.client.consumer.fetch.partition_selection import PartitionSelection
from ottla.client.consumer.fetch.response import (
    BY_ID,
    NEWEST,
    PartitionResponse,
    read_fetch_response,
)
from ottla.client.consumer.fetch.session import FetchPosition, FetchSession
from ottla.client.consumer.metadata_watch import MetadataWatch
from ottla.client.consumer.position.partition_position import UNKNOWN, AssignedPartition
from ottla.client.consumer.position.reset_policy import ResetPolicy
from ottla.client.consumer.subscription import Subscriptions
from ottla.client.errors import KafkaError
from ottla.config.client import ConsumerConfig
from ottla.model.errors import Disconnect
from ottla.model.ids import NO_TOPIC_ID, TopicPartition
from ottla.protocol.encode import Fields, writer_of
from ottla.protocol.schema import Kind, message

FETCH: Final = 1
CLOSE_TIMEOUT_MS: Final = 1_000
COLUMNS_BYTES: Final = 8 << 20
"""Of one partition in one fetch where the user reads columns and has not said how many."""


class Source:
    """A broker that something is read from."""

    def __init__(self, *, read_committed: bool) -> None:
        self.wake_event = asyncio.Event()
        self.selection = PartitionSelection(read_committed=read_committed)
        self.tasks = 0


class Fetcher:
    """Keeps the buffer filled."""

    def __init__(
        self,
        cluster: Cluster,
        subscriptions: Subscriptions,
        watch: MetadataWatch,
        policy: ResetPolicy,
    ) -> None:
        assert isinstance(cluster.config, ConsumerConfig)
        self._cluster = cluster
        self._config: ConsumerConfig = cluster.config
        self._subscriptions = subscriptions
        self._watch = watch
        self._responses = PartitionResponses(cluster, policy, self.wake)
        self._sessions: dict[tuple[int, ConnectionLane], FetchSession] = {}
        self._brokers: dict[int, Source] = {}
        self._changed = asyncio.Event()
        self.reads_columns = False
        """The user reads columns: large fetches are worth their memory."""
        self.fetches = 0

    def attach(self, buffer: Buffer, then: ErrorReaction) -> None:
        self._callbacks = then
        self._responses.attach(buffer, then)

    @property
    def bytes(self) -> int:
        return self._responses.bytes

    def wake(self) -> None:
        """Something can be fetched that could not before."""
        self._changed.set()
        for broker in self._brokers.values():
            broker.wake_event.set()

    def refetch(self, chunk: Chunk) -> None:
        """A chunk does not read: ask again from where the user is."""
        if chunk.is_current:
            chunk.part.seek(chunk.part.offset)
            self.wake()

    async def run(self) -> None:
        """The tasks for each broker that there is something to fetch from."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                for node in {node for node, _ in self._sources()}:
                    broker = self._brokers.get(node) or self._add_source(node)
                    while broker.tasks < broker.selection.fetches:
                        lane = ConnectionLane.MORE_DATA if broker.tasks else ConnectionLane.DATA
                        broker.tasks += 1
                        tasks.create_task(self._fetch_loop(node, broker, lane))
                await self._changed.wait()

    def _add_source(self, node: int) -> Source:
        broker = Source(read_committed=self._config.isolation_level == "read_committed")
        self._brokers[node] = broker
        return broker

    async def close(self) -> None:
        """Let brokers forget the sessions; not worth much waiting."""

        async def one(node: int, fields: Fields) -> None:
            with suppress(OSError, KafkaError):
                await self._cluster.ask(
                    node,
                    FETCH,
                    {**self._request_fields, **fields},
                    at_most=NEWEST,
                    timeout_ms=CLOSE_TIMEOUT_MS,
                    lane=ConnectionLane.COORDINATION,
                )

        async with asyncio.TaskGroup() as tasks:
            for (node, _), session in self._sessions.items():
                if (fields := session.closing()) is not None:
                    tasks.create_task(one(node, fields))

    async def _fetch_loop(self, node: int, broker: Source, lane: ConnectionLane) -> None:
        session = self._sessions.setdefault((node, lane), FetchSession())
        failures = 0
        while True:
            asked = self._next(node, broker)
            if not asked:
                await broker.wake_event.wait()
                continue
            try:
                good = await self._fetch(node, broker, (lane, session), asked)
                failures = 0 if good else failures + 1
            except (OSError, KafkaError) as error:
                # The broker was not reached; codes of a reply are the session's (`FetchSession`) or
                # a partition's (`REFRESH_METADATA`), and are judged where the reply is read.
                session.lost()
                failures += 1
                if isinstance(error, KafkaError) and not error.retriable:
                    self._callbacks.failed(error)
            finally:
                broker.selection.give_back(asked)
            if failures:
                self._watch.ask()
                if (
                    lane is ConnectionLane.MORE_DATA
                ):  # the first goes on with all; a large reply calls again
                    broker.selection.failed()
                    broker.tasks -= 1
                    broker.wake_event.set()
                    return
                await asyncio.sleep(self._cluster.backoff.after(failures) / 1e3)

    def _next(self, node: int, broker: Source) -> dict[TopicPartition, RequestedPartition]:
        """What the next fetch asks for."""
        broker.wake_event.clear()
        wanted = [part for source, part in self._sources() if source == node]
        share, leaves_some = broker.selection.take(wanted, unread=self._has_unread(node))
        if leaves_some:
            broker.wake_event.set()
        return {
            part.tp: RequestedPartition(part, part.version, part.fetch_offset) for part in share
        }

    async def _fetch(
        self,
        node: int,
        broker: Source,
        way: tuple[ConnectionLane, FetchSession],
        asked: Mapping[TopicPartition, RequestedPartition],
    ) -> bool:
        """One request and its answer; whether all went well."""
        lane, session = way
        wanted = {tp: self._fetch_position(each) for tp, each in asked.items()}
        by_id = all(want.topic_id != NO_TOPIC_ID for want in wanted.values())
        version = await self._cluster.version(
            node, FETCH, at_most=NEWEST if by_id else BY_ID - 1, lane=lane
        )
        body = bytearray()
        fields = {**self._request_fields, **session.next(wanted)}
        writer_of(message(FETCH, version, Kind.REQUEST))(fields, body)
        self.fetches += 1
        frame = await self._cluster.ask_bytes(node, FETCH, version, [bytes(body)], lane=lane)
        try:
            reply = read_fetch_response(version, frame)
        except Disconnect as fault:
            raise ConnectionError(str(fault)) from None
        session.on_response(reply.error_code, reply.session_id)
        if reply.error_code:
            return False
        names = {want.topic_id: tp.topic for tp, want in wanted.items()}
        take = self._responses.take
        good = [take(asked, _place(each, names), each) for each in reply.partitions]
        self._callbacks.arrived()
        if broker.selection.on_response(len(frame), len(asked)):
            self._changed.set()
        return all(good)

    def _sources(self) -> list[tuple[int, AssignedPartition]]:
        """Every partition that can be fetched, and from whom."""
        view, now_ms = self._watch.view, self._cluster.clock.mono_ms()
        found: list[tuple[int, AssignedPartition]] = []
        for part in self._subscriptions:
            if not part.is_fetchable:
                continue
            seen = view.partition(part.tp)
            if seen is None or seen.leader not in view.nodes:
                self._watch.ask()
                continue
            part.on_leader_epoch(seen.leader_epoch)
            if not part.is_fetchable:
                self._callbacks.moved()
                continue
            source = part.source(seen.leader, now_ms)
            if source not in view.nodes:  # a replica that has gone
                source, part.replica = seen.leader, UNKNOWN
            found.append((source, part))
        return found

    def _has_unread(self, node: int) -> bool:
        """Whether some partition of a broker is not fetched because the user has yet to read it."""
        view = self._watch.view
        return any(
            (view.leader(part.tp) if part.replica == UNKNOWN else part.replica) == node
            for part in self._subscriptions
            if part.is_full
        )

    def _fetch_position(self, each: RequestedPartition) -> FetchPosition:
        topic = self._watch.view.topics[each.part.tp.topic]
        return FetchPosition(topic.id, each.offset, each.part.leader_epoch, self._most_bytes)

    @property
    def _most_bytes(self) -> int:
        """Of one partition: for columns more, as far as all together stay within one reply."""
        config = self._config
        if not self.reads_columns or config.is_given("max_partition_fetch_bytes"):
            return config.max_partition_fetch_bytes
        share = config.fetch_max_bytes // max(1, len(self._subscriptions))
        return max(config.max_partition_fetch_bytes, min(share, COLUMNS_BYTES))

    @property
    def _request_fields(self) -> dict[str, object]:
        config = self._config
        return {
            "replica_id": -1,
            "max_wait": config.fetch_max_wait_ms,
            "min_bytes": config.fetch_min_bytes,
            "max_bytes": config.fetch_max_bytes,
            "isolation_level": int(config.isolation_level == "read_committed"),
            "rack_id": config.client_rack,
        }


def _place(fetched: PartitionResponse, names: Mapping[UUID, str]) -> TopicPartition:
    topic = fetched.topic
    return TopicPartition(
        names.get(topic, "") if isinstance(topic, UUID) else topic, fetched.partition
    )
