"""The data plane of a broker: partitions, their logs, and the requests that wait on them.

Owns how these parts are connected, and what happens when a log directory fails. Never starts a
loop itself: `App` runs what `loops` returns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from ottla.broker.environment import Environment
from ottla.broker.log_tasks import Parallelism, close, load, parallelism
from ottla.broker.memory import memory_shares
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.delay.purgatory import Purgatory
from ottla.delay.rates import Windows
from ottla.delay.timers import Timers
from ottla.log import validate
from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import CorruptLog
from ottla.log.recovery.recovery import quarantine_log
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.ids import BrokerEpoch, BrokerId, TopicPartition
from ottla.model.metrics import Registry
from ottla.protocol.records.header import CorruptBatch
from ottla.replica.append import Appender
from ottla.replica.commit_waiter import CommitWaiter
from ottla.replica.compaction_loop import CompactionLoop
from ottla.replica.delete_records import RecordDeleter
from ottla.replica.environment import ReplicaEnvironment, ThreadPool
from ottla.replica.fetch.follower_fetches import FollowerFetches
from ottla.replica.fetch.replication_quota import ReplicationQuota
from ottla.replica.fetch_sessions import FetchSessions
from ottla.replica.fetcher.fetchers import Connect, Fetchers
from ottla.replica.fetcher.settings import FetcherMetrics, FetcherSettings, Replication
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions, PartitionWaiters
from ottla.replica.isr_loop import IsrLoop
from ottla.replica.isr_sender import Controller
from ottla.replica.maintenance_loop import MaintenanceLoop
from ottla.replica.metrics import register_gauges
from ottla.replica.move_loop import MoveLoop
from ottla.replica.partition import HostedPartition
from ottla.replica.producer_id_limit import PRODUCER_BYTES, ProducerIdLimit
from ottla.replica.read import Reader
from ottla.replica.removed_files_loop import RemovedFilesLoop
from ottla.replica.retries.retry_loop import RetryLoop
from ottla.replica.services import ReplicaServices
from ottla.replica.topic_metrics import BrokerTopicMetrics
from ottla.replica.transitions import Transitions
from ottla.store import paths
from ottla.store.nodes import LogDirEventNode
from ottla.store.port import Session, SessionExpired, Store, StoreError, StoreUnavailable


async def load_kernels(threads: ThreadPool) -> None:
    """Load the native kernels; records are validated with them from then on."""
    if await threads.run(_warm_up):
        log.info("record validation uses native kernels")


def _warm_up() -> bool:
    for _ in range(KERNEL_ATTEMPTS - 1):
        # CPython 3.11 refuses to parse code while another thread does (gh-106905), as that of a
        # client in the same process that loads its kernels. Numba parses while it is imported.
        with suppress(SystemError):
            return _use_native_kernels()
    return _use_native_kernels()


def _use_native_kernels() -> bool:
    try:
        from ottla.protocol.records import columns
    except (ImportError, OSError) as missing:  # not installed, broken, or no file can be opened
        if validate.installed:
            log.warning("native kernels unavailable, record validation runs in Python: %s", missing)
        return False
    columns.warm_up()
    validate.use_native_kernels(columns.validate_records)
    return True


log = logging.getLogger(__name__)

Spawn: TypeAlias = Callable[[Coroutine[object, None, None]], object]
NOTIFY_RETRY_MS: Final = 1_000
KERNEL_ATTEMPTS: Final = 5


class NoLogDirectoryOnline(Exception):
    """All log directories have failed: the broker cannot store anything and must stop."""

    @classmethod
    def of(cls, directories: LogDirectories) -> NoLogDirectoryOnline:
        reasons = ", ".join(
            f"{directory.path} ({directory.failure})" for directory in directories.all
        )
        return cls(f"every log directory failed: {reasons}")


class Cluster(NamedTuple):
    """This broker among the others."""

    broker_id: BrokerId
    connect: Connect
    controller: Controller


class DataPlane:
    def __init__(
        self,
        environment: Environment,
        config: DynamicConfig,
        cluster: Cluster,
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
        self.metadata, self.registry = metadata, registry
        self.timers = Timers(environment.clock, loop)
        threads = ThreadPool(loop, environment.pool)
        memory = memory_shares(config.current, environment.memory_bytes)
        self._replica_environment = ReplicaEnvironment(
            cluster.broker_id, environment.clock, threads, config.current.replica_lag_time_max_ms,
            producer_ids=ProducerIdLimit(memory.producer_ids // PRODUCER_BYTES),
        )  # fmt: skip
        waiters = _waiters(self.timers, environment.clock, config.current)
        traffic = BrokerTopicMetrics(registry)
        self.hosted = HostedPartitions(self._replica_environment, metadata, waiters, traffic)
        self._flushes = FlushLoop(self.hosted, environment.ring, environment.descriptors.flushes)
        self._isr_loop = IsrLoop(
            self.hosted, cluster.controller, self._broker_epoch, self._flushes,
            registry, spawn=spawn,
        )  # fmt: skip
        self._maintenance = MaintenanceLoop(self.hosted, directories, config, self._flushes)
        self._compaction = CompactionLoop(self.hosted, directories, config, self._flushes, registry)
        self._moves = MoveLoop(self.hosted, directories, _move_quota(config))
        self.fetchers = self._build_fetchers(cluster.connect)
        self.services = self._build_services(_sessions(environment, config.current))
        self._retries = RetryLoop(
            self.services.transitions, self.hosted, directories,
            self._checkpoint_offsets, self._replicas_recovered,
        )  # fmt: skip
        self._listen()
        if config.current.record_validation != "header":
            self.hosted.on_first_append = lambda: spawn(load_kernels(threads))
        register_gauges(registry, self.services)
        self.fetchers.register_gauges(registry)

    def _build_services(self, sessions: FetchSessions) -> ReplicaServices:
        hosted, directories, config = self.hosted, self._directories, self._config
        transitions = Transitions(
            hosted, directories, config.topic, self._flushes, self.fetchers,
            accepts_missing_logs=config.current.log_dirs_accept_missing,
        )  # fmt: skip
        throttle = _replication_quota(config, lambda now: now.leader_replication_throttled_rate)
        return ReplicaServices(
            hosted=hosted,
            appends=Appender(hosted, self._flushes),
            reads=Reader(
                hosted,
                FollowerFetches(hosted, self._isr_loop, throttle),
                reads_by_rack=config.current.replica_selector_class is not None,
            ),
            deletes=RecordDeleter(hosted, self.metadata),
            sessions=sessions,
            transitions=transitions,
            directories=directories,
            moves=self._moves,
            topic_metrics=hosted.topic_metrics,
        )

    def _listen(self) -> None:
        """Have this called when logs fail, settings change, a partition is no longer followed or
        the session with the metadata store changes."""
        self._directories.on_failure = self._directory_failed
        self.hosted.on_fault = self._log_failed
        self.hosted.on_partial_truncation = self._retries.reload_later
        self.hosted.listeners.append(self.fetchers)
        self._config.on_broker(self._broker_settings_changed)
        self._config.on_topic(self._topic_settings_changed)
        self._store.on_session(self._session_changed)

    async def load(self) -> None:
        """Open every log; the controller sends the role of each replica later."""
        self.hosted.mark_offline(await load(self._directories, self._config, self._parallelism()))

    async def prepare_to_lead(self) -> None:
        """In a cluster, load the native kernels before the controller can elect this broker.

        That takes two seconds of CPU, and slows the event loop: a broker that did it when it was
        first written to did it while the clients of a failed leader waited. One without records, or
        that starts before the others, leaves it until it appends some: benchmarks/failover.py.
        """
        if self._config.current.zookeeper_connect is None or self.hosted.on_first_append is None:
            return
        if not any(
            one.log.end_offset > one.log.start_offset for one in self._directories.logs.values()
        ):
            return
        registered = set(await self._store.children(paths.BROKER_IDS))
        if registered - {str(self._replica_environment.broker_id)}:
            self.hosted.on_first_append = None
            await load_kernels(self._replica_environment.thread_pool)

    def loops(self) -> list[Coroutine[object, None, None]]:
        return [
            self._isr_loop.run(),
            self.fetchers.run(),
            self._compaction.run(),
            self._moves.run(),
            self._retries.run(),
            RemovedFilesLoop(self.hosted, self._directories).run(),
            *self._maintenance.loops(),
        ]

    async def close(self) -> None:
        """Flush and close every log, and write the clean-shutdown markers."""
        self._flushes.close()
        self._directories.on_failure = None  # nothing is served any more
        await close(self._directories, self._parallelism())
        self.check_directories()

    def check_directories(self) -> None:
        """Raise NoLogDirectoryOnline if all log directories have failed."""
        if not self._directories.online:
            raise NoLogDirectoryOnline.of(self._directories)

    def _parallelism(self) -> Parallelism:
        environment = self._replica_environment
        return parallelism(
            self._directories, self._config, environment.thread_pool, environment.clock
        )

    def _build_fetchers(self, connect: Connect) -> Fetchers:
        config = self._config
        metrics = FetcherMetrics(self.registry, self.hosted.topic_metrics.all)
        replication = Replication(
            self.hosted,
            self._flushes,
            metrics,
            _replication_quota(config, lambda now: now.follower_replication_throttled_rate),
            self._broker_epoch,
            self._checkpoint_offsets,
        )
        return Fetchers(
            connect,
            replication,
            lambda: FetcherSettings.of(config.current),
            lambda: config.current.num_replica_fetchers,
        )

    async def _checkpoint_offsets(self) -> None:
        """Logs were truncated: before they are appended to, no checkpoint may say otherwise."""
        checkpoints = self._directories.checkpoints
        await self._maintenance.write(
            [*checkpoints.recovery_points(), *checkpoints.start_offsets()]
        )

    def _session_changed(self, state: Session) -> None:
        contact = self._replica_environment.store_contact
        if state in (Session.OVERDUE, Session.EXPIRED):
            contact.is_overdue = True
        elif state is Session.CONNECTED:
            contact.is_overdue = False

    def _broker_epoch(self) -> BrokerEpoch:
        return self.services.transitions.broker_epoch

    # failed logs and log directories

    def _log_failed(self, partition: HostedPartition, fault: Exception) -> None:
        """An I/O error takes the whole log directory offline, a corrupt batch only this log."""
        if isinstance(fault, CorruptBatch):
            self._quarantine(partition, fault)
        else:
            assert isinstance(fault, OSError), fault
            self._directories.failed(partition.log.dir.parent, fault)

    def _quarantine(self, partition: HostedPartition, fault: CorruptBatch) -> None:
        hosted_log = self._directories.logs.pop(partition.key, None)
        if hosted_log is None:
            return  # already taken offline
        self.hosted.mark_offline([partition.key])
        with self._directories.guard(hosted_log.directory):
            try:
                quarantine_log(hosted_log.log, fault)
            except CorruptLog as error:
                log.error("partition %s is now offline: %s", partition.key, error)
                hosted_log.log.release()
                self._directories.quarantined[partition.key] = hosted_log.directory
        self._spawn(self._notify_controller(f"the corrupt log of {partition.key}"))

    def _directory_failed(self, directory: LogDirectory, lost: list[TopicPartition]) -> None:
        self.hosted.mark_offline(lost)
        self._spawn(self._notify_controller(f"the failure in log directory {directory.path}"))

    def _replicas_recovered(self) -> None:
        self._spawn(self._notify_controller("replicas that are available again"))

    async def _notify_controller(self, change: str, *, is_retry: bool = False) -> None:
        """Have the controller ask which replicas are offline.

        Repeated until the store has taken it: leaders of these replicas must be elected elsewhere.
        With a new session the controller asks anyway.
        """
        self.check_directories()
        path = f"{paths.LOG_DIR_EVENTS}/{paths.LOG_DIR_EVENT_PREFIX}"
        try:
            event = LogDirEventNode(self._replica_environment.broker_id).encode()
            await self._store.create(path, event, sequential=True)
        except SessionExpired:
            return
        except (StoreError, StoreUnavailable) as error:
            if not is_retry:
                log.error("cannot notify the controller of %s, retrying: %s", change, error)
            self.timers.call_later(
                NOTIFY_RETRY_MS, lambda: self._spawn(self._notify_controller(change, is_retry=True))
            )

    # changed settings

    def _broker_settings_changed(self, _: BrokerConfig, __: BrokerConfig) -> None:
        for partition in self.hosted:
            partition.log.config = self._config.topic(partition.key.topic)

    def _topic_settings_changed(self, topic: str) -> None:
        config = self._config.topic(topic)
        for partition in self.hosted.of_topic(topic):
            partition.log.config = config


def _sessions(environment: Environment, config: BrokerConfig) -> FetchSessions:
    memory = memory_shares(config, environment.memory_bytes)
    slots = config.max_incremental_fetch_session_cache_slots
    return FetchSessions(slots, environment.dice, memory.fetch_sessions)


def _replication_quota(
    config: DynamicConfig, bytes_per_second: Callable[[BrokerConfig], int]
) -> ReplicationQuota:
    now = config.current
    seconds = now.replication_quota_window_size_seconds
    windows = Windows(now.replication_quota_window_num, seconds * 1_000)
    return ReplicationQuota(windows, lambda: bytes_per_second(config.current))


def _move_quota(config: DynamicConfig) -> ReplicationQuota:
    now = config.current
    seconds = now.alter_log_dirs_replication_quota_window_size_seconds
    windows = Windows(now.alter_log_dirs_replication_quota_window_num, seconds * 1_000)
    return ReplicationQuota(
        windows, lambda: config.current.replica_alter_log_dirs_io_max_bytes_per_second
    )


def _waiters(timers: Timers, clock: Clock, config: BrokerConfig) -> PartitionWaiters:
    return PartitionWaiters(
        CommitWaiter(timers, clock),
        Purgatory("Produce", timers, config.producer_purgatory_purge_interval_requests),
        Purgatory("Fetch", timers, config.fetch_purgatory_purge_interval_requests),
        Purgatory("DeleteRecords", timers, config.delete_records_purgatory_purge_interval_requests),
    )
