"""The data side of a broker: partitions, their logs, and everything that waits on them.

Owns how these parts are put together, and what the loss of a directory means to them. Never starts
a task itself: `loops` are for the app to run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from ottla.broker.environment import Environment
from ottla.broker.log_tasks import ProgressInterval, close, load, progress_interval
from ottla.broker.memory_shares import memory_shares
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.delay.purgatory import Purgatory
from ottla.delay.timers import Timers
from ottla.log import validate
from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import CorruptLog
from ottla.log.recovery.recovery import quarantine_log
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.metrics import Registry
from ottla.protocol.records.header import CorruptBatch
from ottla.replica.append import Appender
from ottla.replica.commit_waiter import CommitWaiter
from ottla.replica.compaction_loop import CompactionLoop
from ottla.replica.delete_records import RecordDeleter
from ottla.replica.environment import ReplicaEnvironment, ThreadPool
from ottla.replica.fetch_sessions import FetchSessions
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions, PartitionWaiters
from ottla.replica.isr_loop import IsrLoop
from ottla.replica.isr_writer import StoreIsrWriter
from ottla.replica.maintenance_loop import MaintenanceLoop
from ottla.replica.metrics import offer_gauges
from ottla.replica.move_loop import MoveLoop
from ottla.replica.partition import HostedPartition
from ottla.replica.read import Reader
from ottla.replica.removed_files_loop import RemovedFilesLoop
from ottla.replica.services import ReplicaServices
from ottla.replica.topic_metrics import BrokerTopicMetrics
from ottla.replica.transitions import Transitions
from ottla.store import paths
from ottla.store.nodes import LogDirEventNode
from ottla.store.port import Store, StoreError, StoreUnavailable


async def load_kernels(off: ThreadPool) -> None:
    """From when this is done, records are examined natively."""
    if await off.run(_warm_up):
        log.info("record validation runs on native kernels")


def _warm_up() -> bool:
    try:
        from ottla.protocol.records import columns
    except ImportError as missing:  # the extra `arrow` is not installed, or not well
        if validate.installed:
            log.warning("record validation runs in Python, not on native kernels: %s", missing)
        return False
    columns.warm_up()
    validate.use_native_kernels(columns.validate_records)
    return True


log = logging.getLogger(__name__)

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]


class NoLogDirectoryOnline(Exception):
    """Every log directory has failed: a broker that can keep nothing must not run."""

    @classmethod
    def of(cls, directories: LogDirectories) -> NoLogDirectoryOnline:
        reasons = ", ".join(f"{one.path} ({one.failure})" for one in directories.all)
        return cls(f"every log directory failed: {reasons}")


class DataPlane:
    def __init__(
        self,
        world: Environment,
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
        self._around = ReplicaEnvironment(me, world.clock, ThreadPool(loop, world.pool), lag_max_ms)
        waiting = _waiting(self.timers, world.clock, config.current)
        self.registry = registry
        traffic = BrokerTopicMetrics(registry)
        self.hosted = HostedPartitions(self._around, metadata, waiting, traffic)
        self._flushes = flushes = FlushLoop(self.hosted, world.ring)
        self._isr_writer = StoreIsrWriter(store, world.clock)
        self._isr_loop = IsrLoop(self.hosted, self._isr_writer, spawn, flushes, registry)
        self._care = MaintenanceLoop(self.hosted, directories, config, flushes)
        self._compaction = CompactionLoop(self.hosted, directories, config, flushes, registry)
        self._moves = MoveLoop(self.hosted, directories)
        self.services = ReplicaServices(
            hosted=self.hosted,
            appends=Appender(self.hosted, flushes),
            reads=Reader(self.hosted, self._isr_loop),
            deletes=RecordDeleter(self.hosted, metadata),
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
            raise NoLogDirectoryOnline.of(self._directories)

    def _pace(self) -> ProgressInterval:
        around = self._around
        return progress_interval(self._directories, self._config, around.off, around.clock)

    # A log or a directory that failed

    def _log_failed(self, partition: HostedPartition, fault: Exception) -> None:
        """One of `FAULTS`: the whole directory goes with a failed disk, one log with rot."""
        if isinstance(fault, CorruptBatch):
            self._rotten(partition, fault)
        else:
            assert isinstance(fault, OSError), fault
            self._directories.failed(partition.log.dir.parent, fault)

    def _rotten(self, partition: HostedPartition, fault: CorruptBatch) -> None:
        held = self._directories.logs.pop(partition.key, None)
        if held is None:
            return  # it failed while it was failing
        self.hosted.lose([partition.key])
        with self._directories.guard(held.directory):
            try:
                quarantine_log(held.log, fault)
            except CorruptLog as found:
                log.error("%s goes offline: %s", partition.key, found)
        self._spawn(self._tell_controller(held.directory))

    def _directory_failed(self, directory: LogDirectory, lost: list[TopicPartition]) -> None:
        self.hosted.lose(lost)
        self._spawn(self._tell_controller(directory))

    async def _tell_controller(self, directory: LogDirectory) -> None:
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


def _sessions(world: Environment, config: BrokerConfig) -> FetchSessions:
    memory = memory_shares(config, world.memory_bytes)
    slots = config.max_incremental_fetch_session_cache_slots
    return FetchSessions(slots, world.dice, memory.fetch_sessions)


def _waiting(timers: Timers, clock: Clock, config: BrokerConfig) -> PartitionWaiters:
    return PartitionWaiters(
        CommitWaiter(timers, clock),
        Purgatory("Produce", timers, config.producer_purgatory_purge_interval_requests),
        Purgatory("Fetch", timers, config.fetch_purgatory_purge_interval_requests),
        Purgatory("DeleteRecords", timers, config.delete_records_purgatory_purge_interval_requests),
    )
