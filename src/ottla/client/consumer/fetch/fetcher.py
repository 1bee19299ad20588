"""The Fetch requests in flight to each broker.

Owns the tasks and the sessions: one of each per broker, and a second of each for a broker whose
responses are large (`partition_selection`). Fetches run ahead of the user: while one chunk of a
partition is read the next one is fetched, and no more. Never decodes a record.
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
    FetchErrorReaction,
    PartitionResponses,
    RequestedPartition,
)
from ottla.client.consumer.fetch.partition_selection import PartitionSelection
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
from ottla.protocol.hot.fetch_response import (
    BY_ID,
    NEWEST,
    PartitionResponse,
    read_fetch_response,
)
from ottla.protocol.schema import MessageKind, message

FETCH: Final = 1
CLOSE_TIMEOUT_MS: Final = 1_000
COLUMNS_BYTES: Final = 8 << 20
"""Per partition and fetch if the user reads columns and has not set a limit."""


class Source:
    """A broker that is fetched from."""

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
        """The user reads columns: large fetches are worth the memory."""
        self.fetches = 0

    def attach(self, buffer: Buffer, callbacks: FetchErrorReaction) -> None:
        self._callbacks = callbacks
        self._responses.attach(buffer, callbacks)

    @property
    def bytes(self) -> int:
        return self._responses.bytes

    def wake(self) -> None:
        """Look again for partitions to fetch."""
        self._changed.set()
        for broker in self._brokers.values():
            broker.wake_event.set()

    def refetch(self, chunk: Chunk) -> None:
        """A chunk cannot be decoded: fetch again from the user's position."""
        if chunk.is_current:
            chunk.part.seek(chunk.part.offset)
            self.wake()

    async def run(self) -> None:
        """Start tasks for each broker that there is something to fetch from."""
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
        """Close the fetch sessions, with a short timeout."""

        async def close_session(node: int, fields: Fields) -> None:
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
                if (fields := session.close_request()) is not None:
                    tasks.create_task(close_session(node, fields))

    async def _fetch_loop(self, node: int, broker: Source, lane: ConnectionLane) -> None:
        session = self._sessions.setdefault((node, lane), FetchSession())
        failures = 0
        while True:
            requested = self._select_partitions(node, broker)
            if not requested:
                await broker.wake_event.wait()
                continue
            try:
                good = await self._fetch(node, broker, (lane, session), requested)
                failures = 0 if good else failures + 1
            except (OSError, KafkaError) as error:
                # The broker was not reached; error codes of a response are the session's
                # (`FetchSession`) or a partition's (`PartitionResponses`).
                session.reset()
                failures += 1
                if isinstance(error, KafkaError) and not error.retriable:
                    self._callbacks.failed(error)
            finally:
                broker.selection.give_back(requested)
            if failures:
                self._watch.request_refresh()
                # The first task goes on with all; a large response starts another second one.
                if lane is ConnectionLane.MORE_DATA:
                    broker.selection.on_task_ended()
                    broker.tasks -= 1
                    broker.wake_event.set()
                    return
                await asyncio.sleep(self._cluster.backoff.after(failures) / 1e3)

    def _select_partitions(
        self, node: int, broker: Source
    ) -> dict[TopicPartition, RequestedPartition]:
        """The partitions of the next fetch."""
        broker.wake_event.clear()
        fetchable = [part for source, part in self._sources() if source == node]
        share, leaves_some = broker.selection.take(fetchable, unread=self._has_unread(node))
        if leaves_some:
            broker.wake_event.set()
        return {
            part.tp: RequestedPartition(part, part.version, part.fetch_offset) for part in share
        }

    async def _fetch(
        self,
        node: int,
        broker: Source,
        lane_and_session: tuple[ConnectionLane, FetchSession],
        requested: Mapping[TopicPartition, RequestedPartition],
    ) -> bool:
        """One request and its response; whether there was no error."""
        lane, session = lane_and_session
        positions = {tp: self._fetch_position(partition) for tp, partition in requested.items()}
        by_id = all(position.topic_id != NO_TOPIC_ID for position in positions.values())
        version = await self._cluster.version(
            node, FETCH, at_most=NEWEST if by_id else BY_ID - 1, lane=lane
        )
        body = bytearray()
        fields = {**self._request_fields, **session.next_request(positions)}
        writer_of(message(FETCH, version, MessageKind.REQUEST))(fields, body)
        self.fetches += 1
        frame = await self._cluster.ask_bytes(node, FETCH, version, [bytes(body)], lane=lane)
        try:
            reply = read_fetch_response(version, frame)
        except Disconnect as fault:
            raise ConnectionError(str(fault)) from None
        session.on_response(reply.error_code, reply.session_id)
        if reply.error_code:
            return False
        names = {position.topic_id: tp.topic for tp, position in positions.items()}
        handle = self._responses.handle
        good = [
            handle(requested, _topic_partition(response, names), response)
            for response in reply.partitions
        ]
        self._callbacks.arrived()
        if broker.selection.on_response(len(frame), len(requested)):
            self._changed.set()
        return all(good)

    def _sources(self) -> list[tuple[int, AssignedPartition]]:
        """Every partition that can be fetched, and the broker to fetch it from."""
        view, now_ms = self._watch.view, self._cluster.clock.mono_ms()
        sources: list[tuple[int, AssignedPartition]] = []
        for part in self._subscriptions:
            if not part.is_fetchable:
                continue
            partition_view = view.partition(part.tp)
            if partition_view is None or partition_view.leader not in view.nodes:
                self._watch.request_refresh()
                continue
            part.on_leader_epoch(partition_view.leader_epoch)
            if not part.is_fetchable:
                self._callbacks.moved()
                continue
            source = part.source(partition_view.leader, now_ms)
            if source not in view.nodes:  # the replica is gone
                source, part.replica = partition_view.leader, UNKNOWN
            sources.append((source, part))
        return sources

    def _has_unread(self, node: int) -> bool:
        """Whether a partition of this broker is not fetched because its buffer is full."""
        view = self._watch.view
        return any(
            (view.leader(part.tp) if part.replica == UNKNOWN else part.replica) == node
            for part in self._subscriptions
            if part.is_full
        )

    def _fetch_position(self, requested: RequestedPartition) -> FetchPosition:
        topic = self._watch.view.topics[requested.part.tp.topic]
        return FetchPosition(
            topic.id, requested.offset, requested.part.leader_epoch, self._most_bytes
        )

    @property
    def _most_bytes(self) -> int:
        """Per partition: more for columns, as long as all together fit into one response."""
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


def _topic_partition(fetched: PartitionResponse, names: Mapping[UUID, str]) -> TopicPartition:
    topic = fetched.topic
    return TopicPartition(
        names.get(topic, "") if isinstance(topic, UUID) else topic, fetched.partition
    )
