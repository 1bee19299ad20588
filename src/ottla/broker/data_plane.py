"""The data side of a broker: partitions, their logs, and everything that waits on them.

Owns how these parts are put together, and what the loss of a directory means to them. Never starts
a task itself: `loops` are for the app to run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from ottla.broker.environment import World
from ottla.broker.kernels import load_kernels
from ottla.broker.log_closing import close
from ottla.broker.log_loading import load
from ottla.broker.log_tasks import Pace, pace_for
from ottla.broker.memory_shares import memory_shares
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.delay.purgatory import Purgatory
from ottla.delay.timers import Timers
from ottla.log.directories.directory import Directory
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import CorruptLog
from ottla.log.recovery.recovery import condemn
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.metrics import Registry
from ottla.protocol.records.corrupt_batch import CorruptBatch
from ottla.replica.append import Appends
from ottla.replica.commit_waiter import Commits
from ottla.replica.compaction_loop import CompactionLoop
from ottla.replica.delete_records import Deletes
from ottla.replica.environment import Off, Surroundings
from ottla.replica.fetch_sessions import FetchSessions
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import Hosted, Waiting
from ottla.replica.isr_loop import IsrLoop
from ottla.replica.isr_writer import StoredIsr
from ottla.replica.maintenance_loop import CareLoop
from ottla.replica.metrics import offer_gauges
from ottla.replica.move_loop import MoveLoop
from ottla.replica.partition import Partition
from ottla.replica.read import Reads
from ottla.replica.removed_files_loop import RemovedFilesLoop
from ottla.replica.services import ReplicaServices
from ottla.replica.topic_metrics import Traffic
from ottla.replica.transitions import Transitions
from ottla.store import paths
from ottla.store.nodes import LogDirEventNode
from ottla.store.port import Store, StoreError, StoreUnavailable

log = logging.getLogger(__name__)

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]


class NoDirectoryLeft(Exception):
    """Every log directory has failed: a broker that can keep nothing must not run."""

    @classmethod
    def of(cls, directories: LogDirectories) -> NoDirectoryLeft:
        reasons = ", ".join(f"{one.path} ({one.failure})" for one in directories.all)
        return cls(f"every log directory failed: {reasons}")


class Data:
    def __init__(
        self,
        world: World,
        config: DynamicConfig,
        me: BrokerId,
        *,
        store: Store,
        metadata: MetadataCache,
        directories: LogDirectories,
        registry: Registry,
        spawn: Spawn,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._config = config
        self._store = store
        self._spawn = spawn
        self._directories = directories
        self.metadata = metadata
        self.timers = Timers(world.clock, loop)
        lag_max_ms = config.current.replica_lag_time_max_ms
        self._around = Surroundings(me, world.clock, Off(loop, world.pool), lag_max_ms)
        waiting = _waiting(self.timers, world.clock, config.current)
        self.registry = registry
        traffic = Traffic(registry)
        self.hosted = Hosted(self._around, metadata, waiting, traffic)
        self._flushes = flushes = FlushLoop(self.hosted, world.ring)
        self._isr_writer = StoredIsr(store, world.clock)
        self._isr_loop = IsrLoop(self.hosted, self._isr_writer, spawn, flushes, registry)
        self._care = CareLoop(self.hosted, directories, config, flushes)
        self._compaction = CompactionLoop(self.hosted, directories, config, flushes, registry)
        self._moves = MoveLoop(self.hosted, directories)
        self.services = ReplicaServices(
            hosted=self.hosted,
            appends=Appends(self.hosted, flushes),
            reads=Reads(self.hosted, self._isr_loop),
            deletes=Deletes(self.hosted, metadata),
            sessions=_sessions(world, config.current),
            transitions=Transitions(self.hosted, directories, config.topic, flushes),
            directories=directories,
            moves=self._moves,
            traffic=traffic,
        )
        directories.on_failure = self._directory_failed
        self.hosted.on_fault = self._log_failed
        if config.current.record_validation != "header":
            self.services.appends.on_first = lambda: spawn(load_kernels(self._around.off))
        config.on_broker(self._broker_settings_changed)
        config.on_topic(self._topic_settings_changed)
        offer_gauges(registry, self.services)

    async def load(self) -> None:
        """Open every log; the controller says later what each is for."""
        self.hosted.lose(await load(self._directories, self._config, self._pace()))

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        return [
            self._isr_loop.run(),
            self._isr_writer.run(),
            self._compaction.run(),
            self._moves.run(),
            RemovedFilesLoop(self.hosted, self._directories).run(),
            *self._care.loops(),
        ]

    async def close(self) -> None:
        """Flush and close every log, and say that the stop was clean."""
        self._flushes.close()
        self._directories.on_failure = None  # nothing is served any more
        await close(self._directories, self._pace())
        self.check_directories()

    def check_directories(self) -> None:
        """NoDirectoryLeft when every log directory has failed."""
        if not self._directories.online:
            raise NoDirectoryLeft.of(self._directories)

    def _pace(self) -> Pace:
        around = self._around
        return pace_for(self._directories, self._config, around.off, around.clock)

    # A log or a directory that failed

    def _log_failed(self, partition: Partition, fault: Exception) -> None:
        """One of `FAULTS`: the whole directory goes with a failed disk, one log with rot."""
        if isinstance(fault, CorruptBatch):
            self._rotten(partition, fault)
        else:
            assert isinstance(fault, OSError), fault
            self._directories.failed(partition.log.dir.parent, fault)

    def _rotten(self, partition: Partition, fault: CorruptBatch) -> None:
        held = self._directories.held.pop(partition.key, None)
        if held is None:
            return  # it failed while it was failing
        self.hosted.lose([partition.key])
        with self._directories.guard(held.directory):
            try:
                condemn(held.log, fault)
            except CorruptLog as found:
                log.error("%s goes offline: %s", partition.key, found)
        self._spawn(self._tell_controller(held.directory))

    def _directory_failed(self, directory: Directory, lost: list[TopicPartition]) -> None:
        self.hosted.lose(lost)
        self._spawn(self._tell_controller(directory))

    async def _tell_controller(self, directory: Directory) -> None:
        self.check_directories()
        path = f"{paths.LOG_DIR_EVENTS}/{paths.LOG_DIR_EVENT_PREFIX}"
        try:
            event = LogDirEventNode(self._around.me).encode()
            await self._store.create(path, event, sequential=True)
        except (StoreError, StoreUnavailable) as gone:
            log.error("the controller cannot be told of %s: %s", directory.path, gone)

    # Settings that changed

    def _broker_settings_changed(self, _: BrokerConfig, __: BrokerConfig) -> None:
        for partition in self.hosted:
            partition.log.config = self._config.topic(partition.key.topic)

    def _topic_settings_changed(self, topic: str) -> None:
        config = self._config.topic(topic)
        for partition in self.hosted.of_topic(topic):
            partition.log.config = config


def _sessions(world: World, config: BrokerConfig) -> FetchSessions:
    memory = memory_shares(config, world.memory_bytes)
    slots = config.max_incremental_fetch_session_cache_slots
    return FetchSessions(slots, world.dice, memory.fetch_sessions)


def _waiting(timers: Timers, clock: Clock, config: BrokerConfig) -> Waiting:
    return Waiting(
        Commits(timers, clock),
        Purgatory("Produce", timers, config.producer_purgatory_purge_interval_requests),
        Purgatory("Fetch", timers, config.fetch_purgatory_purge_interval_requests),
        Purgatory("DeleteRecords", timers, config.delete_records_purgatory_purge_interval_requests),
    )
