"""A broker's data side without its network: real partitions and logs on a disk that forgets.

`data_side` gives a `DataSide` on a virtual loop. Its store is in memory, its pool is inline (or
held back by the test), and what a controller would say is said with `lead`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID, uuid5

from ottla.broker.app import TaskStarter
from ottla.broker.data_plane import Cluster, DataPlane
from ottla.broker.descriptors import UNLIMITED_SHARES
from ottla.broker.environment import Environment
from ottla.config.dynamic import DynamicConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.files import FileSlice
from ottla.metadata.cache import MetadataCache
from ottla.metadata.image import DELETED, BrokerMetadata, Endpoint, PartitionMetadata, Update
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from ottla.model.metrics import Counter, Histogram, Registry, Tally
from ottla.protocol.hot import FetchedPartition, ProducedPartition
from ottla.protocol.records.batch import build, walk
from ottla.protocol.records.record import NewRecord, read_records
from ottla.replica.append import AppendOptions, PartitionAppend
from ottla.replica.fetch.options import CONSUMER, FetchOptions, Isolation
from ottla.replica.fetcher.leader_requests import FetchLink
from ottla.replica.flush_loop import FILES_AT_ONCE, Ring
from ottla.replica.leader import LeaderAssignment
from ottla.replica.partition import HostedPartition as Hosted
from ottla.replica.partition_fetch import PartitionFetch, PartitionFetchResult
from ottla.replica.transitions import PartitionTransition
from ottla.shared_state.registration import create_root_nodes
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import StateNode, TopicNode
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.inline_pool import InlinePool
from tests.fakes.isr_controller import IsrController
from tests.fakes.virtual_loop import LoopClock

ME, OTHER = BrokerId(0), BrokerId(1)
TP = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)
NEW_TOPIC_ID = UUID(int=8)
"""Of a topic that was deleted and created again."""


def topic_id_of(topic: str) -> UUID:
    """Short names have one id for all: many tests name it."""
    return TOPIC_ID if len(topic) < 6 else uuid5(TOPIC_ID, topic)


class DataSide:
    def __init__(
        self,
        disk: ForgettingDisk,
        settings: Mapping[str, str],
        dirs: list[Path],
        tasks: asyncio.TaskGroup,
        ring: Ring | None = None,
        broker_id: BrokerId = ME,
        flush_files: int = FILES_AT_ONCE,
    ) -> None:
        self.broker_id = broker_id
        self._tasks = tasks
        self._running: list[asyncio.Task[None]] = []
        self.clock = LoopClock()
        self.disk = disk
        self.pool = InlinePool()
        self.config = DynamicConfig({"log.dirs": ",".join(map(str, dirs)), **settings})
        self.ensemble = Ensemble()
        self.store = MemoryStore(self.ensemble)
        self.metadata = MetadataCache(broker_id, self.clock)
        self.registry = Registry()
        self.links: dict[BrokerId, FetchLink] = {}
        """By which its fetchers reach other brokers."""
        dice = Random(1)
        self.directories = LogDirectories(dirs, disk, self.clock, dice)
        self.directories.open()
        self.directories.claim(broker_id, "cluster")
        world = Environment(
            self.clock, dice, disk, lambda _: self.store, self.pool, ring=ring,
            descriptors=UNLIMITED_SHARES._replace(flushes=flush_files),
        )  # fmt: skip
        self.data = DataPlane(
            world,
            self.config,
            Cluster(broker_id, self._connect, IsrController(self.store, self.metadata)),
            store=self.store,
            metadata=self.metadata,
            directories=self.directories,
            registry=self.registry,
            spawn=TaskStarter(tasks),
        )
        self.services = self.data.services
        self.data.hosted.on_first_append = None
        self.hosted = self.data.hosted

    def _connect(self, broker: BrokerId, _: str) -> FetchLink:
        if broker not in self.links:
            raise ConnectionError(f"broker {broker} is not there")
        return self.links[broker]

    def run(self, *loops: Coroutine[Any, Any, None]) -> None:
        """Let these loops run until the end of the test."""
        self._running += [self._tasks.create_task(loop) for loop in loops]

    def end(self) -> None:
        for task in self._running:
            task.cancel()

    async def lead(
        self,
        key: TopicPartition = TP,
        *,
        epoch: int = 0,
        replicas: tuple[BrokerId, ...] = (ME,),
        isr: tuple[BrokerId, ...] | None = None,
        leader: BrokerId = ME,
        is_new: bool = True,
        topic_id: UUID | None = None,
    ) -> Hosted:
        """What a LeaderAndIsr and an UpdateMetadata would say, and the store with them."""
        topic_id = topic_id or topic_id_of(key.topic)
        in_sync = replicas if isr is None else isr
        state = StateNode(leader, LeaderEpoch(epoch), in_sync, ControllerEpoch(1))
        await self._add_to_topic(key, replicas)
        path = paths.partition_state(key)
        version = await self._put(path, state.encode())
        assigned = LeaderAssignment(leader, LeaderEpoch(epoch), in_sync, replicas, version)
        await self.services.transitions.apply_leader_and_isr(
            [PartitionTransition(key, topic_id, assigned, is_new)]
        )
        told = PartitionMetadata(leader, LeaderEpoch(epoch), in_sync, replicas)
        brokers = tuple(map(_registered, replicas))
        self.metadata.apply(Update(ME, ControllerEpoch(1), brokers, [(key, topic_id, told)]))
        return self.hosted.get(key)

    async def _add_to_topic(self, key: TopicPartition, replicas: tuple[BrokerId, ...]) -> None:
        path = paths.topic(key.topic)
        node = await self.store.get(path)
        known = TopicNode.decode(node.data).partitions if node is not None and node.data else {}
        topic = TopicNode(topic_id_of(key.topic), {**known, key.partition: replicas})
        await self._put(path, topic.encode())

    async def delete_topic(self, name: str) -> None:
        """Remove it from the store, as the controller does last."""
        await self._put(paths.topic(name), TopicNode(TOPIC_ID, {}).encode())

    def forget(self, key: TopicPartition) -> None:
        """What an UpdateMetadata says of a partition that is deleted."""
        gone = PartitionMetadata(DELETED, LeaderEpoch(0), (), ())
        brokers = (BrokerMetadata(ME, {}),)
        self.metadata.apply(Update(ME, ControllerEpoch(1), brokers, [(key, TOPIC_ID, gone)]))

    async def _put(self, path: str, content: bytes) -> int:
        node = await self.store.get(path)
        if node is not None:
            return await self.store.set(path, content)
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)):
            parent = "/" + "/".join(parts[:depth])
            if await self.store.get(parent) is None:
                await self.store.create(parent)
        await self.store.create(path, content)
        return 0

    async def follow(self, key: TopicPartition = TP, *, epoch: int) -> Hosted:
        """Lose the leadership to the other broker."""
        return await self.lead(key, epoch=epoch, replicas=(ME, OTHER), leader=OTHER)

    def start_append(
        self,
        *values: bytes | None,
        key: TopicPartition = TP,
        acks: int = 1,
        timeout_ms: int = 1_000,
        records: bytes | None = None,
    ) -> asyncio.Future[ProducedPartition]:
        """Append one batch; the future has its outcome when the reply would be sent."""
        done: asyncio.Future[ProducedPartition] = asyncio.get_running_loop().create_future()
        batch = records if records is not None else self.batch(*values)
        self.services.appends.append(
            [PartitionAppend(key, memoryview(batch))],
            AppendOptions(acks, timeout_ms),
            lambda outcomes: done.set_result(outcomes[0]),
        )
        return done

    async def append(
        self, *values: bytes | None, key: TopicPartition = TP, acks: int = 1
    ) -> ProducedPartition:
        return await self.start_append(*values, key=key, acks=acks)

    def batch(self, *values: bytes | None, key: bytes | None = None, **header: Any) -> bytes:
        now_ms = self.clock.wall_ms()
        return build([NewRecord(key, value, (), now_ms) for value in values], **header)

    def fetch(
        self, *requests: PartitionFetch, **terms: Any
    ) -> asyncio.Future[list[PartitionFetchResult]]:
        """Fetch these; the future has the parts of the reply when it would be sent."""
        done: asyncio.Future[list[PartitionFetchResult]] = (
            asyncio.get_running_loop().create_future()
        )
        self.services.reads.fetch(list(requests), replace(TERMS, **terms), done.set_result)
        return done

    def start_fetch(self, offset: int, **terms: Any) -> asyncio.Future[list[PartitionFetchResult]]:
        """Fetch the one partition from here on."""
        return self.fetch(fetch_from(offset), **terms)

    async def read(self, offset: int = 0, **terms: Any) -> FetchedPartition:
        """What there is from here on, at once."""
        [fetched] = await self.start_fetch(offset, max_wait_ms=0, **terms)
        return fetched.part

    async def settle(self) -> None:
        """Until the loop has nothing left to do at this moment."""
        for _ in range(30):
            await asyncio.sleep(0)

    async def once(self) -> None:
        """One turn of the loop."""
        await asyncio.sleep(0)

    async def until(self, mono_ms: int) -> None:
        """Let time pass."""
        await asyncio.sleep((mono_ms - self.clock.mono_ms()) / 1000)

    def count(self, name: str, **labels: str) -> float:
        """What a metric says now."""
        for family in self.registry.families():
            if family.name == name:
                metric = family.metrics[tuple(sorted(labels.items()))]
                assert not isinstance(metric, Histogram)
                return metric.value if isinstance(metric, Counter | Tally) else metric()
        raise AssertionError(f"no metric {name} is registered")


def _registered(broker: BrokerId) -> BrokerMetadata:
    endpoints = {"PLAINTEXT": Endpoint("localhost", 9_000 + broker)}
    return BrokerMetadata(broker, endpoints, f"rack-{broker}")


TERMS: Final = FetchOptions(CONSUMER, 500, 1, 1 << 20, Isolation.READ_UNCOMMITTED)


def fetch_from(offset: int, key: TopicPartition = TP, **more: Any) -> PartitionFetch:
    """One partition of a fetch."""
    want = PartitionFetch(key, more.pop("topic_id", NO_TOPIC_ID))
    want.offset = offset
    want.max_bytes = 1 << 20
    want.log_start = 0
    for name, value in more.items():
        setattr(want, name, value)
    return want


def values_of(part: FetchedPartition) -> list[bytes | None]:
    """The values of the whole batches in a reply."""
    assert part.error_code is ErrorCode.none, part.error_code
    content = part.records
    if isinstance(content, FileSlice):
        content = content.read()
    assert isinstance(content, bytes)
    view = memoryview(content)
    return [
        record.value
        for at, header in walk(view)
        for record in read_records(view[at : at + header.size])
    ]


@asynccontextmanager
async def data_side(
    settings: Mapping[str, str] | None = None,
    *,
    disk: ForgettingDisk | None = None,
    dirs: tuple[str, ...] = ("/data",),
    ring: Ring | None = None,
    broker_id: BrokerId = ME,
    flush_files: int = FILES_AT_ONCE,
) -> AsyncIterator[DataSide]:
    async with asyncio.TaskGroup() as tasks:
        side = DataSide(
            disk or ForgettingDisk(),
            {"flush.before.ack": "never", **(settings or {})},
            [Path(one) for one in dirs],
            tasks,
            ring,
            broker_id,
            flush_files,
        )
        await side.store.start()
        await create_root_nodes(side.store, None, Random(0))
        await side.data.load()
        yield side
        side.end()
