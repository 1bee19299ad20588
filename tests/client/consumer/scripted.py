"""A cluster that says what a test tells it to, and the consumer's core on top of it.

Time is the virtual loop's. Replies are scripted by API key: one object for every time, or a list
to use up; an exception is raised. Fetches are served from `logs` unless they are scripted too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from inspect import isawaitable
from random import Random
from types import SimpleNamespace
from typing import Any, Final, Self, cast
from uuid import UUID

from kio.serial import entity_reader

from ottla.client.cluster import Cluster, ConnectionLane, CoordinatorKind
from ottla.client.cluster_view import ClusterView, Node, PartitionView, TopicView
from ottla.client.consumer.aio import _call
from ottla.client.consumer.builder import ConsumerBuilder
from ottla.client.consumer.core import Core
from ottla.client.consumer.fetch.delivery import take
from ottla.client.consumer.record import Record
from ottla.client.retry import Backoff, Deadline
from ottla.config.client import ConsumerConfig
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.hot.fetch import FetchedPartition, fetch_reply
from ottla.protocol.records.batch import read_header
from ottla.protocol.schema import MessageKind, message
from ottla.protocol.wire import Call
from tests.fakes.virtual_loop import LoopClock

FETCH: Final = 1
LIST_OFFSETS: Final = 2
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
OFFSET_FOR_LEADER_EPOCH: Final = 23
MODERN_HEARTBEAT: Final = 68
FETCH_VERSION: Final = 17


class Asked(SimpleNamespace):
    """One question: `node`, `key`, `fields`, `lane`."""


class ScriptedCluster:
    """Looks like `Cluster` to a consumer."""

    def __init__(self, config: ConsumerConfig, topics: Mapping[str, int]) -> None:
        self.config = config
        self.clock = LoopClock()
        self.backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, Random(0))
        self.metadata = view(topics)
        self.script: dict[int, Any] = {}
        self.asked: list[Asked] = []
        self.refreshed: list[frozenset[str] | None] = []
        self.forgotten = 0
        self.next_views: list[ClusterView] = []
        self.logs: dict[TopicPartition, list[bytes]] = {}
        self.fetched: list[Any] = []
        self.fetched_by: list[ConnectionLane] = []
        self.unreachable: set[ConnectionLane] = set()
        self.fetch_answers: list[Callable[[TopicPartition, Any], FetchedPartition] | Exception] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def times(self, key: int) -> int:
        return sum(each.key == key for each in self.asked)

    def last(self, key: int) -> Any:
        return [each.fields for each in self.asked if each.key == key][-1]

    async def refresh(self, topics: Iterable[str] | None = None) -> ClusterView:
        self.refreshed.append(None if topics is None else frozenset(topics))
        await asyncio.sleep(0.001)
        if self.next_views:
            self.metadata = self.next_views.pop(0)
        return self.metadata

    async def coordinator(self, kind: CoordinatorKind, key: str, *, timeout_ms: int = 0) -> int:
        return 1

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        self.forgotten += 1

    async def version(
        self,
        node: int,
        key: int,
        *,
        at_most: int | None = None,
        lane: ConnectionLane = ConnectionLane.DATA,
    ) -> int:
        return FETCH_VERSION

    async def ask(
        self,
        node: int,
        key: int,
        fields: Mapping[str, Any],
        *,
        timeout_ms: int | None = None,
        at_most: int | None = None,
        lane: ConnectionLane = ConnectionLane.DATA,
    ) -> Any:
        self.asked.append(Asked(node=node, key=key, fields=fields, lane=lane))
        await asyncio.sleep(0.001)
        answer = self.script[key]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if callable(answer):
            answer = answer(fields)
            if isawaitable(answer):
                answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask_bytes(
        self,
        node: int,
        key: int,
        version: int,
        body: Sequence[bytes],
        *,
        lane: ConnectionLane = ConnectionLane.DATA,
    ) -> memoryview:
        read: Any = entity_reader(message(FETCH, version, MessageKind.REQUEST))
        request, _end = read(memoryview(b"".join(body)), 0)
        self.fetched.append((node, request))
        self.fetched_by.append(lane)
        if lane in self.unreachable:
            raise ConnectionError("no more connections")
        names = {topic.id: name for name, topic in self.metadata.topics.items()}
        answers: dict[UUID, list[FetchedPartition]] = {}
        script = self.fetch_answers.pop(0) if self.fetch_answers else self._from_log
        if isinstance(script, Exception):
            raise script
        for topic in request.topics:
            for each in topic.partitions:
                tp = TopicPartition(names[topic.topic_id], each.partition)
                answers.setdefault(topic.topic_id, []).append(script(tp, each))
        data = any(part.records for parts in answers.values() for part in parts)
        refused = any(part.error_code for parts in answers.values() for part in parts)
        await asyncio.sleep(0.001 if data or refused else self.config.fetch_max_wait_ms / 1e3)
        call = Call(FETCH, version, 0, None, 0)
        frame = fetch_reply(call, 0, ErrorCode.none, 0, list(answers.items()))
        return memoryview(b"".join(bytes(part) for part in frame))[4:]  # type: ignore[arg-type]

    def _from_log(self, tp: TopicPartition, asked: Any) -> FetchedPartition:
        batches = self.logs.get(tp, [])
        end = read_header(batches[-1]).next_offset if batches else asked.fetch_offset
        if asked.fetch_offset > end:
            return FetchedPartition(tp.partition, ErrorCode.offset_out_of_range)
        found = [each for each in batches if read_header(each).next_offset > asked.fetch_offset]
        return FetchedPartition(
            tp.partition, ErrorCode.none, end, end, 0, None, -1, None, None, b"".join(found[:1])
        )


class Rig:
    """A consumer's core on a scripted cluster."""

    def __init__(self, topics: Mapping[str, int] | None = None, **options: Any) -> None:
        settings = {"auto_offset_reset": "earliest", **options}
        self.blueprint = ConsumerBuilder(settings, None, (None, None), ())
        self.cluster = ScriptedCluster(self.blueprint.config, topics or {"t": 2})
        self.cluster.script[LIST_OFFSETS] = offsets_at(0)
        self.cluster.script[OFFSET_FETCH] = committed({})
        self.cluster.script[OFFSET_COMMIT] = commits()
        self.cluster.script[OFFSET_FOR_LEADER_EPOCH] = nothing_truncated
        self.core = Core(
            cast(Cluster, self.cluster),
            self.blueprint.core().reading,
            self.blueprint.core().interceptors,
        )
        fetcher = self.core.fetcher
        self.core.attach(_call, fetcher.wake, fetcher.refetch, self.blueprint.group)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Core]:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.core.run())
            await self.core.opened.wait()
            try:
                yield self.core
            finally:
                self.core.stop()

    async def poll(self, seconds: float = 1.0) -> list[Record[Any, Any]]:
        deadline = Deadline(self.core.clock, int(seconds * 1000))
        while await self.core.wait(deadline):
            if records := take(self.core):
                return records
        return []

    async def until(self, done: Callable[[], bool], seconds: float = 60.0) -> None:
        """Poll until something is so."""
        end = self.core.clock.mono_ms() + seconds * 1000
        while not done():
            assert self.core.clock.mono_ms() < end, "it never came to be"
            await self.poll(0.05)


def view(
    topics: Mapping[str, int], *, leader: int = 1, epoch: int = 0, nodes: Iterable[int] = (1, 2)
) -> ClusterView:
    return ClusterView(
        nodes={node: Node(node, "here", node) for node in nodes},
        topics={
            name: TopicView(
                name,
                topic_id(name),
                False,
                tuple(
                    PartitionView(index, leader, epoch, (1, 2), (1, 2), ())
                    for index in range(count)
                ),
            )
            for name, count in topics.items()
        },
    )


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"\1")[:16])


def offsets_at(offset: int, epoch: int = 0) -> Callable[[Any], Any]:
    """A ListOffsets that finds this offset at every time."""

    def answer(fields: Any) -> Any:
        return SimpleNamespace(
            topics=[
                SimpleNamespace(
                    name=topic["name"],
                    partitions=[
                        SimpleNamespace(
                            partition_index=each["partition_index"],
                            error_code=ErrorCode.none,
                            offset=offset,
                            timestamp=-1,
                            leader_epoch=epoch,
                        )
                        for each in topic["partitions"]
                    ],
                )
                for topic in fields["topics"]
            ]
        )

    return answer


def committed(offsets: Mapping[TopicPartition, tuple[int, int]]) -> Callable[[Any], Any]:
    """An OffsetFetch that knows these offsets with their leader epochs."""

    def answer(fields: Any) -> Any:
        return SimpleNamespace(
            groups=[
                SimpleNamespace(
                    error_code=ErrorCode.none,
                    topics=[
                        SimpleNamespace(
                            name=topic["name"],
                            partitions=[
                                SimpleNamespace(
                                    partition_index=index,
                                    error_code=ErrorCode.none,
                                    committed_offset=offsets.get(
                                        TopicPartition(topic["name"], index), (-1, -1)
                                    )[0],
                                    committed_leader_epoch=offsets.get(
                                        TopicPartition(topic["name"], index), (-1, -1)
                                    )[1],
                                    metadata="",
                                )
                                for index in topic["partition_indexes"]
                            ],
                        )
                        for topic in fields["groups"][0]["topics"]
                    ],
                )
            ]
        )

    return answer


def nothing_truncated(fields: Any) -> Any:
    """An OffsetForLeaderEpoch of a leader that has everything."""
    return SimpleNamespace(
        topics=[
            SimpleNamespace(
                topic=topic["topic"],
                partitions=[
                    SimpleNamespace(
                        partition=each["partition"],
                        error_code=ErrorCode.none,
                        leader_epoch=each["leader_epoch"],
                        end_offset=1 << 40,
                    )
                    for each in topic["partitions"]
                ],
            )
            for topic in fields["topics"]
        ]
    )


def commits(code: ErrorCode = ErrorCode.none) -> Callable[[Any], Any]:
    """An OffsetCommit that answers everything with this code."""

    def answer(fields: Any) -> Any:
        return SimpleNamespace(
            topics=[
                SimpleNamespace(
                    name=topic["name"],
                    partitions=[
                        SimpleNamespace(partition_index=each["partition_index"], error_code=code)
                        for each in topic["partitions"]
                    ],
                )
                for topic in fields["topics"]
            ]
        )

    return answer


def refused(code: ErrorCode) -> Any:
    """A reply that is a code and little more."""
    return SimpleNamespace(
        error_code=code,
        error_message=None,
        member_id="given",
        throttle_time=timedelta(0),
    )
