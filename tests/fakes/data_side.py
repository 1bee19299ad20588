"""A broker's data side without its network: real partitions and logs on a disk that forgets.

`data_side` gives a `DataSide` on a virtual loop. Its store is in memory, its pool is inline (or
held back by the test), and what a controller would say is said with `lead`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from uuid import UUID

from ottla.broker.data import Data
from ottla.broker.world import World
from ottla.config.dynamic import DynamicConfig
from ottla.log.directories import LogDirectories
from ottla.metadata.cache import MetadataCache
from ottla.metadata.image import Broker, Partition, Update
from ottla.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from ottla.model.metrics import Registry
from ottla.protocol.hot import ProducedPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from ottla.replica.append import AppendTerms, ToAppend
from ottla.replica.leader import Assigned
from ottla.replica.partition import Partition as Hosted
from ottla.replica.read import CONSUMER, FetchTerms, Isolation
from ottla.replica.transitions import ToBecome
from ottla.replica.wanted import Fetched, Wanted
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import StateNode
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.inline_pool import InlinePool
from tests.fakes.virtual_loop import LoopClock

ME, OTHER = BrokerId(0), BrokerId(1)
TP = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)


class DataSide:
    def __init__(
        self, disk: ForgettingDisk, settings: Mapping[str, str], dirs: list[Path], spawn: object
    ) -> None:
        self.clock = LoopClock()
        self.disk = disk
        self.pool = InlinePool()
        self.config = DynamicConfig({"log.dirs": ",".join(map(str, dirs)), **settings})
        self.store = MemoryStore(Ensemble())
        self.metadata = MetadataCache(ME)
        self.registry = Registry()
        dice = Random(1)
        self.directories = LogDirectories(dirs, disk, self.clock, dice)
        self.directories.open()
        self.directories.claim(ME, "cluster")
        world = World(self.clock, dice, disk, lambda _: self.store, self.pool)
        self.data = Data(
            world,
            self.config,
            ME,
            store=self.store,
            metadata=self.metadata,
            directories=self.directories,
            registry=self.registry,
            spawn=spawn,  # type: ignore[arg-type]
        )
        self.services = self.data.services
        self.data.services.appends.on_first = None
        self.hosted = self.data.hosted

    async def lead(
        self,
        key: TopicPartition = TP,
        *,
        epoch: int = 0,
        replicas: tuple[BrokerId, ...] = (ME,),
        isr: tuple[BrokerId, ...] | None = None,
        leader: BrokerId = ME,
    ) -> Hosted:
        """What a LeaderAndIsr and an UpdateMetadata would say, and the store with them."""
        in_sync = replicas if isr is None else isr
        state = StateNode(leader, LeaderEpoch(epoch), in_sync, ControllerEpoch(1))
        path = paths.partition_state(key)
        version = await self._put(path, state.encode())
        assigned = Assigned(leader, LeaderEpoch(epoch), in_sync, replicas, version)
        await self.services.transitions.become([ToBecome(key, TOPIC_ID, assigned)])
        told = Partition(leader, LeaderEpoch(epoch), in_sync, replicas)
        brokers = tuple(Broker(broker, {}) for broker in replicas)
        self.metadata.apply(Update(ME, ControllerEpoch(1), brokers, [(key, TOPIC_ID, told)]))
        return self.hosted.get(key)

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
            [ToAppend(key, memoryview(batch))],
            AppendTerms(acks, timeout_ms),
            lambda outcomes: done.set_result(outcomes[0]),
        )
        return done

    async def append(
        self, *values: bytes | None, key: TopicPartition = TP, acks: int = 1
    ) -> ProducedPartition:
        return await self.start_append(*values, key=key, acks=acks)

    def batch(self, *values: bytes | None, key: bytes | None = None) -> bytes:
        now_ms = self.clock.wall_ms()
        return build([NewRecord(key, value, (), now_ms) for value in values])

    def start_fetch(
        self,
        offset: int,
        *,
        key: TopicPartition = TP,
        replica: BrokerId = CONSUMER,
        wait_ms: int = 500,
        min_bytes: int = 1,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> asyncio.Future[Fetched]:
        done: asyncio.Future[Fetched] = asyncio.get_running_loop().create_future()
        wanted = Wanted(key)
        wanted.offset = offset
        wanted.max_bytes = 1 << 20
        wanted.log_start = 0
        terms = FetchTerms(replica, wait_ms, min_bytes, 1 << 20, isolation)
        self.services.reads.fetch([wanted], terms, lambda fetched: done.set_result(fetched[0]))
        return done

    async def settle(self) -> None:
        """Until the loop has nothing left to do at this moment."""
        for _ in range(20):
            await asyncio.sleep(0)


@asynccontextmanager
async def data_side(
    settings: Mapping[str, str] | None = None,
    *,
    disk: ForgettingDisk | None = None,
    dirs: tuple[str, ...] = ("/data",),
) -> AsyncIterator[DataSide]:
    async with asyncio.TaskGroup() as tasks:
        side = DataSide(
            disk or ForgettingDisk(),
            {"flush.before.ack": "never", **(settings or {})},
            [Path(one) for one in dirs],
            tasks.create_task,
        )
        await side.store.start()
        await side.data.load()
        yield side
