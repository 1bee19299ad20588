"""Fetching: one request at a time under way to each broker that something is read from.

Owns the tasks, the sessions, and what each error of a partition leads to. Fetches run ahead of the
user: while one chunk of a partition is read the next one is on its way, and no further. Never
decodes a record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from ottla.client.cluster import Cluster, Lane
from ottla.client.consumer.buffer import Buffer
from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.errors import OffsetOutOfRange
from ottla.client.consumer.fetch_reply import BY_ID, NEWEST, Fetched, read_fetch_reply
from ottla.client.consumer.fetch_session import FetchSession, Want
from ottla.client.consumer.partition import UNKNOWN, Partition
from ottla.client.consumer.resets import ResetPolicy
from ottla.client.consumer.subscription import Subscriptions
from ottla.client.consumer.watch import Watch
from ottla.client.errors import KafkaError, RecordTooLarge, refusal
from ottla.config.client import ConsumerConfig
from ottla.model.errors import Disconnect, ErrorCode
from ottla.model.ids import NO_TOPIC_ID, TopicPartition
from ottla.protocol.encode import Fields, writer_of
from ottla.protocol.records.corrupt import CorruptBatch
from ottla.protocol.schema import Kind, message

FETCH: Final = 1
CLOSE_TIMEOUT_MS: Final = 1_000

LOOK_AGAIN: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.replica_not_available,
        ErrorCode.kafka_storage_error,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.offset_not_available,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.inconsistent_topic_id,
        ErrorCode.leader_not_available,
        ErrorCode.unknown_server_error,
    }
)
"""Refusals after which the cluster is looked at anew, and the partition is tried again."""


class Asked(NamedTuple):
    """What was asked, to compare when the answer comes."""

    part: Partition
    version: int
    offset: int


class Then(NamedTuple):
    """Whom to tell."""

    arrived: Callable[[], None]
    moved: Callable[[], None]  # some partition must be placed anew
    failed: Callable[[Exception], None]


class Fetcher:
    """Keeps the buffer filled."""

    def __init__(
        self, cluster: Cluster, subscriptions: Subscriptions, watch: Watch, policy: ResetPolicy
    ) -> None:
        assert isinstance(cluster.config, ConsumerConfig)
        self._cluster = cluster
        self._config: ConsumerConfig = cluster.config
        self._subscriptions = subscriptions
        self._watch = watch
        self._policy = policy
        self._sessions: dict[int, FetchSession] = {}
        self._bells: dict[int, asyncio.Event] = {}
        self._changed = asyncio.Event()
        self.fetches = 0
        self.bytes = 0

    def serve(self, buffer: Buffer, then: Then) -> None:
        self._buffer = buffer
        self._then = then

    def kick(self) -> None:
        """Something can be fetched that could not before."""
        self._changed.set()
        for bell in self._bells.values():
            bell.set()

    def refetch(self, chunk: Chunk) -> None:
        """A chunk does not read: ask again from where the user is."""
        if chunk.is_current:
            chunk.part.seek(chunk.part.offset)
            self.kick()

    async def run(self) -> None:
        """A task for each broker that there is something to fetch from."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                for node in {node for node, _ in self._sources()} - self._bells.keys():
                    self._bells[node] = asyncio.Event()
                    tasks.create_task(self._from(node))
                await self._changed.wait()

    async def close(self) -> None:
        """Let brokers forget the sessions; not worth much waiting."""

        async def one(node: int, fields: Fields) -> None:
            with suppress(OSError, KafkaError):
                await self._cluster.ask(
                    node,
                    FETCH,
                    {**self._terms, **fields},
                    at_most=NEWEST,
                    timeout_ms=CLOSE_TIMEOUT_MS,
                    lane=Lane.COORDINATION,
                )

        async with asyncio.TaskGroup() as tasks:
            for node, session in self._sessions.items():
                if (fields := session.closing()) is not None:
                    tasks.create_task(one(node, fields))

    async def _from(self, node: int) -> None:
        session = self._sessions[node] = FetchSession()
        failures = 0
        while True:
            self._bells[node].clear()
            asked = {
                part.tp: Asked(part, part.version, part.fetch_offset)
                for source, part in self._sources()
                if source == node
            }
            if not asked:
                await self._bells[node].wait()
                continue
            try:
                good = await self._fetch(node, session, asked)
                failures = 0 if good else failures + 1
            except (OSError, KafkaError) as error:
                session.lost()
                failures += 1
                if isinstance(error, KafkaError) and not error.retriable:
                    self._then.failed(error)
            if failures:
                self._watch.ask()
                await asyncio.sleep(self._cluster.backoff.after(failures) / 1e3)

    async def _fetch(
        self, node: int, session: FetchSession, asked: Mapping[TopicPartition, Asked]
    ) -> bool:
        """One request and its answer; whether all went well."""
        wanted = {tp: self._want(each) for tp, each in asked.items()}
        by_id = all(want.topic_id != NO_TOPIC_ID for want in wanted.values())
        version = await self._cluster.version(node, FETCH, at_most=NEWEST if by_id else BY_ID - 1)
        body = bytearray()
        fields = {**self._terms, **session.next(wanted)}
        writer_of(message(FETCH, version, Kind.REQUEST))(fields, body)
        self.fetches += 1
        frame = await self._cluster.ask_bytes(node, FETCH, version, [bytes(body)])
        try:
            reply = read_fetch_reply(version, frame)
        except Disconnect as fault:
            raise ConnectionError(str(fault)) from None
        session.answered(reply.error_code, reply.session_id)
        if reply.error_code:
            return False
        names = {want.topic_id: tp.topic for tp, want in wanted.items()}
        good = [self._take(asked, _place(each, names), each) for each in reply.partitions]
        self._then.arrived()
        return all(good)

    def _take(
        self, asked: Mapping[TopicPartition, Asked], tp: TopicPartition, fetched: Fetched
    ) -> bool:
        """One partition of a reply; False when the cluster should be looked at before the next."""
        each = asked.get(tp)
        if each is None or each.part.version != each.version:
            return True  # sought or given up meanwhile
        part = each.part
        if fetched.error_code:
            return self._refused(part, fetched)
        part.high_watermark = fetched.high_watermark
        part.stable_offset = fetched.stable_offset
        part.log_start = fetched.log_start
        if fetched.preferred_replica != UNKNOWN:
            until_ms = self._cluster.clock.mono_ms() + self._config.metadata_max_age_ms
            part.prefer(fetched.preferred_replica, until_ms)
            self.kick()  # another broker's task may have to begin
            return True
        if len(fetched.records):
            self._keep(each, fetched)
        return True

    def _keep(self, each: Asked, fetched: Fetched) -> None:
        part = each.part
        try:
            chunk = Chunk(part, each.version, fetched.records, fetched.aborted)
        except CorruptBatch as fault:
            self._then.failed(
                KafkaError(ErrorCode.corrupt_message, f"{part.tp} at {each.offset}: {fault}")
            )
            return
        if chunk.end < 0:
            self._then.failed(
                RecordTooLarge(
                    f"{part.tp} at {each.offset}: the next batch is larger than "
                    f"max.partition.fetch.bytes={self._config.max_partition_fetch_bytes}"
                )
            )
            return
        self.bytes += len(fetched.records)
        part.fetch_offset = chunk.end
        self._buffer.add(chunk)

    def _refused(self, part: Partition, fetched: Fetched) -> bool:
        code = ErrorCode(fetched.error_code)
        if code is ErrorCode.offset_out_of_range:
            return self._out_of_range(part)
        if code in LOOK_AGAIN:
            part.replica = UNKNOWN
            return False
        self._then.failed(refusal(code, f"{part.tp}: {code.name}"))
        return False

    def _out_of_range(self, part: Partition) -> bool:
        if part.replica != UNKNOWN:  # a follower may lag: the leader knows
            part.replica = UNKNOWN
            self.kick()
            return True
        if part.arrived != part.finished:
            return False  # what was fetched before is read first
        timestamp = self._policy.timestamp(self._cluster.clock.wall_ms())
        if timestamp is None:
            part.stick(OffsetOutOfRange({part.tp: part.offset}))
        else:
            part.reset(timestamp)
            self._then.moved()
        return True

    def _sources(self) -> list[tuple[int, Partition]]:
        """Every partition that can be fetched, and from whom."""
        view, now_ms = self._watch.view, self._cluster.clock.mono_ms()
        found: list[tuple[int, Partition]] = []
        for part in self._subscriptions:
            if not part.is_fetchable:
                continue
            seen = view.partition(part.tp)
            if seen is None or seen.leader not in view.nodes:
                self._watch.ask()
                continue
            part.led_by(seen.leader_epoch)
            if not part.is_fetchable:
                self._then.moved()
                continue
            source = part.source(seen.leader, now_ms)
            if source not in view.nodes:  # a replica that has gone
                source, part.replica = seen.leader, UNKNOWN
            found.append((source, part))
        return found

    def _want(self, each: Asked) -> Want:
        topic = self._watch.view.topics[each.part.tp.topic]
        return Want(
            topic.id,
            each.offset,
            each.part.leader_epoch,
            self._config.max_partition_fetch_bytes,
        )

    @property
    def _terms(self) -> dict[str, object]:
        config = self._config
        return {
            "replica_id": -1,
            "max_wait": config.fetch_max_wait_ms,
            "min_bytes": config.fetch_min_bytes,
            "max_bytes": config.fetch_max_bytes,
            "isolation_level": int(config.isolation_level == "read_committed"),
            "rack_id": config.client_rack,
        }


def _place(fetched: Fetched, names: Mapping[UUID, str]) -> TopicPartition:
    topic = fetched.topic
    return TopicPartition(
        names.get(topic, "") if isinstance(topic, UUID) else topic, fetched.partition
    )
