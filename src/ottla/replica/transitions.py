"""Performs LeaderAndIsr and StopReplica requests of the controller.

Owns the order of these changes and the highest controller epoch received. Never elects a leader.
Work on many partitions yields to the event loop regularly.

A replica whose log cannot be opened or deleted for a passing reason (`OutOfResources`) is offline,
and put on `retries`: `retries/retry_loop.py` tries again, and so does the controller's next
request. After any other error it stays offline.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from ottla.config.topic import TopicConfig
from ottla.delay.slices import in_slices
from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import (
    LogDirectories,
    remove_quarantined,
    rename_to_stray,
)
from ottla.log.directories.names import DirectoryKind
from ottla.log.files import OutOfResources
from ottla.log.log import Log
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import (
    NO_BROKER,
    NO_EPOCH,
    NO_TOPIC_ID,
    BrokerEpoch,
    ControllerEpoch,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicPartition,
)
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.leader import LeaderAssignment
from ottla.replica.partition import HostedPartition
from ottla.replica.retries.schedule import RetrySchedule

log = logging.getLogger(__name__)

TURN: Final = 8
"""Partitions changed between two turns of the loop: each may make or rename a few files."""


class PartitionTransition(NamedTuple):
    """One partition of a LeaderAndIsr."""

    key: TopicPartition
    topic_id: TopicId
    assigned: LeaderAssignment
    is_new: bool = False
    """The partition has just been made: there can be no replica of it anywhere yet."""

    @property
    def may_be_empty(self) -> bool:
        """Whether a replica without a log lacks nothing that was acknowledged.

        Under the first epoch and version nobody else can have led, and no replica has restarted
        since: the controller that made the partition may have died before it said so.
        """
        assigned = self.assigned
        return self.is_new or (assigned.leader_epoch == 0 and assigned.version == 0)


class PartitionStop(NamedTuple):
    """One partition of a StopReplica."""

    key: TopicPartition
    leader_epoch: LeaderEpoch
    delete: bool


class PartialTruncation(NamedTuple):
    """A log that was cut in part; it must be loaded again before it is used."""

    key: TopicPartition
    cut_from: Offset
    """Everything from here on may be gone."""


PendingWork: TypeAlias = PartitionTransition | PartitionStop | PartialTruncation
"""What could not be done for a passing reason."""


class EpochFence(NamedTuple):
    """The epochs of a controller request: stale ones are rejected."""

    controller_epoch: ControllerEpoch
    broker_epoch: BrokerEpoch


class FetcherAssignment(Protocol):
    """Where partitions to follow are added: `fetcher/fetchers.py`."""

    def add(self, partition: HostedPartition) -> None: ...


class Transitions:
    def __init__(
        self,
        hosted: HostedPartitions,
        directories: LogDirectories,
        topic_config: Callable[[str], TopicConfig],
        flushes: FlushLoop,
        fetchers: FetcherAssignment,
        *,
        accepts_missing_logs: bool = False,
    ) -> None:
        self._fetchers = fetchers
        self._accepts_missing_logs = accepts_missing_logs
        self._hosted = hosted
        self._flushes = flushes
        self._directories = directories
        self._topic_config = topic_config
        self.controller_epoch = ControllerEpoch(0)
        self.broker_epoch = BrokerEpoch(-1)
        self._is_shutting_down = False
        self.retries = RetrySchedule[PendingWork]()
        self.has_retries = asyncio.Event()
        self.reloading: dict[TopicPartition, asyncio.Future[None]] = {}
        """Logs that are being loaded again; done when they have been."""

    def set_broker_epoch(self, epoch: BrokerEpoch) -> None:
        """The broker has registered: requests for an earlier broker epoch are rejected."""
        self.broker_epoch = epoch

    def begin_shutdown(self) -> None:
        """The controller is asked to move leaders away: what they leave is not followed any more.

        A new leader would propose this broker for its in-sync set again, and wait for its fetches.
        """
        self._is_shutting_down = True

    def check(self, fence: EpochFence) -> None:
        """Reject requests for an earlier broker epoch, or of an older controller."""
        if -1 < fence.broker_epoch < self.broker_epoch:
            raise KafkaError(ErrorCode.stale_broker_epoch)
        if fence.controller_epoch < self.controller_epoch:
            raise KafkaError(ErrorCode.stale_controller_epoch)
        self.controller_epoch = fence.controller_epoch

    async def apply_leader_and_isr(
        self, states: Iterable[PartitionTransition]
    ) -> dict[TopicPartition, ErrorCode]:
        """New logs are durable before their partitions are led or followed: each log directory is
        synced once. So a replica without a log has never appended or fetched a record."""
        states, clock = list(states), self._hosted.environment.clock
        await self._forget_deleted(states)
        created: dict[TopicPartition, list[LogDirectory]] = {}
        refused: dict[TopicPartition, ErrorCode] = {}
        async for state in in_slices(states, TURN, clock):
            await self._wait_for_truncation(state.key)
            code = self._prepare_log(state, created)
            if code is not ErrorCode.none:
                refused[state.key] = code
        refused |= await self._sync(created, {state.key: state for state in states})
        codes: dict[TopicPartition, ErrorCode] = {}
        async for state in in_slices(states, TURN, clock):
            await self._wait_for_truncation(state.key)
            codes[state.key] = refused.get(state.key) or self._apply_one(state)
        return codes

    async def _forget_deleted(self, states: Sequence[PartitionTransition]) -> None:
        """Remove what checkpoints have of earlier partitions of these names, deleted lately.

        All at once and on a thread: a checkpoint has every partition of its directory, and each new
        log would have it written again. The entries of a log that is lost or corrupt stay: they say
        that an empty one must not take its place.
        """
        directories = self._directories
        new = [
            state.key
            for state in states
            if directories.get(state.key) is None
            and state.key not in directories.quarantined
            and not directories.has_lost(state.key)
        ]
        for write in directories.checkpoints.forget_all(new):
            try:
                await self._hosted.environment.thread_pool.run(write.run)
            except OSError as error:
                directories.failed(write.directory.path, error)

    async def _wait_for_truncation(self, key: TopicPartition) -> None:
        """A log that is being truncated gets no other role before that is durable; one that was
        cut in part, not before it is loaded again."""
        if key in self.reloading:
            await asyncio.wait({self.reloading[key]})
        partition = self._hosted.find(key)
        if partition is not None and partition.truncating is not None:
            await asyncio.wait({partition.truncating})

    def _prepare_log(
        self, state: PartitionTransition, created: dict[TopicPartition, list[LogDirectory]]
    ) -> ErrorCode:
        """Create the log of a partition that has none yet; `created` gets its log directory."""
        hosted, pending = self._hosted, self.retries.get(state.key)
        if isinstance(pending, PartialTruncation):
            return ErrorCode.kafka_storage_error
        if state.key in hosted.offline and pending is None and not self._may_refill(state):
            return ErrorCode.kafka_storage_error
        if hosted.environment.broker_id not in state.assigned.replicas:
            return ErrorCode.unknown_topic_or_partition
        if hosted.deleted.has(state.key, state.topic_id, state.assigned.leader_epoch):
            log.info("ignoring a late request to host %s: it has been deleted", state.key)
            return ErrorCode.unknown_topic_id
        if hosted.find(state.key) is not None:
            return ErrorCode.none
        existing = self._directories.get(state.key)
        try:
            directory = self.open_log(state)
        except (OSError, KafkaError) as error:
            return self._fail("open the log", state, error)
        if directory is None:
            return ErrorCode.kafka_storage_error
        if pending is not None:
            self.retries.remove(state.key)
            hosted.remove(state.key)
        # What waited for a retry may have been created without its directory being synced.
        if pending is not None or self._directories.get(state.key) is not existing:
            created[state.key] = [directory]
        return ErrorCode.none

    def open_log(self, state: PartitionTransition) -> LogDirectory | None:
        """The directory of the partition's log, which is created if it may be; None if not.

        A created log is durable once the directory is synced.
        """
        directories = self._directories
        refills = state.key in directories.quarantined
        if refills:
            self._set_aside_corrupt(state.key)
        self._rename_stray(state)
        if self._lacks_its_log(state):
            return None
        if directories.get(state.key) is None:
            self._create_log(state, refills=refills)
        return directories.logs[state.key].directory

    def retry_later(self, work: PendingWork) -> None:
        """It could not be done for a passing reason: the replica is offline until it is."""
        self._hosted.mark_offline([work.key])
        self.retries.add(work.key, work, self._hosted.environment.clock.mono_ms())
        self.has_retries.set()

    def _fail(self, action: str, work: PendingWork, error: Exception) -> ErrorCode:
        """Mark the replica offline, for now or for good."""
        if isinstance(error, OutOfResources):
            level = logging.INFO if len(self.retries) else logging.WARNING  # one for all of them
            log.log(level, "cannot %s of %s: %s; trying again later", action, work.key, error)
            self.retry_later(work)
        else:
            log.error("cannot %s of %s: %s; marking the replica offline", action, work.key, error)
            self.retries.remove(work.key)
            self._hosted.mark_offline([work.key])
        return ErrorCode.kafka_storage_error

    def _apply_one(self, state: PartitionTransition) -> ErrorCode:
        hosted = self._hosted
        if state.key in hosted.offline:
            return ErrorCode.kafka_storage_error
        try:
            partition = hosted.find(state.key)
            if partition is None:
                existing = self._directories.get(state.key)
                if existing is None:  # deleted by a later request while the directory was synced
                    return ErrorCode.unknown_topic_or_partition
                partition = hosted.host(existing)
            if not _is_same_topic(partition.log, state.topic_id):
                return ErrorCode.inconsistent_topic_id
            if state.assigned.leader_epoch <= partition.leader_epoch:
                return self._refresh(partition, state.assigned)
            self._change_role(partition, state.assigned)
        except (OSError, KafkaError) as error:
            return self._fail("open the log", state, error)
        return ErrorCode.none

    def _change_role(self, partition: HostedPartition, assigned: LeaderAssignment) -> None:
        if assigned.leader == self._hosted.environment.broker_id:
            partition.lead(assigned)
            if partition.waits_for_flush:
                self._flushes.request(partition)
            self._hosted.role_changed(partition)
            return
        partition.follow(assigned)
        self._hosted.role_changed(partition)
        if not self._is_shutting_down or self._hosted.environment.broker_id in assigned.isr:
            self._fetchers.add(partition)

    def _refresh(self, partition: HostedPartition, assigned: LeaderAssignment) -> ErrorCode:
        """Within an epoch only the in-sync set changes: of interest to a leader that proposed one
        and could not learn whether it was taken."""
        leadership = partition.leadership
        if (
            leadership is None
            or assigned.leader_epoch != leadership.epoch
            or assigned.version <= leadership.version
        ):
            return ErrorCode.stale_controller_epoch
        partition.set_isr(frozenset(assigned.isr), assigned.version)
        if partition.waits_for_flush:
            self._flushes.request(partition)
        self._hosted.advance(partition)
        return ErrorCode.none

    def _rename_stray(self, state: PartitionTransition) -> None:
        """Set aside the log of an earlier topic of that name, deleted while this broker was down.

        Only before the partition is hosted: later a request for another topic id may be a late one.
        """
        stray = self._directories.get(state.key)
        if stray is not None and not _is_same_topic(stray, state.topic_id):
            path = rename_to_stray(self._directories, state.key)
            log.warning(
                "the log of %s belongs to topic id %s, not %s; renamed to %s",
                state.key, stray.topic_id, state.topic_id, path,
            )  # fmt: skip

    def _may_refill(self, state: PartitionTransition) -> bool:
        """Whether a corrupt log can be replaced: another broker leads, and nobody counts on this
        replica, for it is not in the in-sync set."""
        own_id, assigned = self._hosted.environment.broker_id, state.assigned
        return (
            state.key in self._directories.quarantined
            and assigned.leader not in (NO_BROKER, own_id)
            and own_id not in assigned.isr
        )

    def _set_aside_corrupt(self, key: TopicPartition) -> None:
        path = remove_quarantined(self._directories, key, DirectoryKind.STRAY)
        self._hosted.remove(key)
        log.warning(
            "the corrupt log of %s was renamed to %s; copying the partition from its leader",
            key, path,
        )  # fmt: skip

    def _lacks_its_log(self, state: PartitionTransition) -> bool:
        """Whether the in-sync set counts on a log here that does not exist.

        It must not be replaced by an empty one: as leader it would have the others truncate theirs.
        Unless it is the last member and never had that log, because its broker stopped before it
        made one: then nothing was ever committed, for the high watermark waits for every member,
        and nobody joins the in-sync set without a log.
        """
        broker_id = self._hosted.environment.broker_id
        if (
            self._accepts_missing_logs
            or state.may_be_empty
            or broker_id not in state.assigned.isr
            or (
                set(state.assigned.isr) == {broker_id} and not self._directories.has_lost(state.key)
            )
            or self._directories.get(state.key) is not None
            or len(self._directories.online) < len(self._directories.all)  # see `_create_log`
        ):
            return False
        log.error(
            "%s is in the in-sync set of %s but has no log of it; refusing to serve it",
            f"broker {broker_id}",
            state.key,
        )
        return True

    def _create_log(self, state: PartitionTransition, *, refills: bool) -> None:
        directories = self._directories
        has_offline = len(directories.online) < len(directories.all)
        if has_offline and not (state.is_new or refills):
            # It may well be in the directory that is offline: an empty one must not replace it.
            raise OSError(
                errno.EIO, "not creating an empty log: an offline log directory may contain it"
            )
        directories.create(state.key, state.topic_id, self._topic_config(state.key.topic))

    async def stop_replicas(
        self, stops: Iterable[PartitionStop]
    ) -> dict[TopicPartition, ErrorCode]:
        """Deletions are durable when this returns: each log directory is synced once."""
        stops = list(stops)
        touched: dict[TopicPartition, list[LogDirectory]] = {}
        codes: dict[TopicPartition, ErrorCode] = {}
        async for stop in in_slices(stops, TURN, self._hosted.environment.clock):
            await self._wait_for_truncation(stop.key)
            codes[stop.key] = self._stop_one(stop, touched)
        return codes | await self._sync(touched, {stop.key: stop for stop in stops})

    async def delete_reassigned(
        self, is_elsewhere: Callable[[TopicPartition, TopicId | None], bool]
    ) -> None:
        """Delete replicas that other brokers have got while this one was down: the StopReplica of
        that time never arrived. A power cut while a log was created leaves an empty one without a
        topic id; one that has records, from before topics had ids, may be of an earlier topic."""
        replicas = ((key, hosted.log) for key, hosted in self._directories.logs.items())
        keys = [
            key
            for key, replica in replicas
            if (replica.topic_id not in (None, NO_TOPIC_ID) or replica.end_offset == 0)
            and is_elsewhere(key, replica.topic_id)
        ]
        if keys:
            names = ", ".join(map(str, keys))
            log.info("deleting replicas that were reassigned while this broker was down: %s", names)
        stops = [PartitionStop(key, NO_EPOCH, delete=True) for key in keys]
        for key, code in (await self.stop_replicas(stops)).items():
            if code is not ErrorCode.none:
                log.warning("cannot delete the reassigned replica of %s: %s", key, code.name)

    async def _sync(
        self,
        touched: dict[TopicPartition, list[LogDirectory]],
        work: Mapping[TopicPartition, PendingWork],
    ) -> dict[TopicPartition, ErrorCode]:
        """Sync each of these directories once; the partitions of those where that failed."""
        codes: dict[TopicPartition, ErrorCode] = {}
        for directory in dict.fromkeys(each for some in touched.values() for each in some):
            lost = [key for key, directories in touched.items() if directory in directories]
            try:
                await self._hosted.environment.thread_pool.run(directory.sync)
            except OutOfResources as error:
                for key in lost:
                    codes[key] = self._fail("sync the directory", work[key], error)
            except OSError as error:
                log.error(
                    "cannot sync log directory %s: %s; marking it offline", directory.path, error
                )
                self._directories.failed(directory.path, error)
                self._hosted.mark_offline(lost)
                codes |= dict.fromkeys(lost, ErrorCode.kafka_storage_error)
        return codes

    def _stop_one(
        self, stop: PartitionStop, touched: dict[TopicPartition, list[LogDirectory]]
    ) -> ErrorCode:
        partition = self._hosted.find(stop.key)
        pending = self.retries.get(stop.key)
        is_corrupt = stop.key in self._directories.quarantined
        is_deletable = stop.delete and (is_corrupt or pending is not None)
        if stop.key in self._hosted.offline and not is_deletable:
            return ErrorCode.kafka_storage_error
        if isinstance(pending, PartitionTransition) and (
            0 <= stop.leader_epoch < pending.assigned.leader_epoch
        ):
            return ErrorCode.fenced_leader_epoch
        if partition is not None and 0 <= stop.leader_epoch < partition.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        self._hosted.remove(stop.key)
        try:
            touched[stop.key] = self.delete_log(stop)
        except OSError as error:
            return self._fail("delete the log", stop, error)
        if self.retries.remove(stop.key) is not None:  # it may have been renamed, and not synced
            touched[stop.key] = self._directories.online
        return ErrorCode.none

    def delete_log(self, stop: PartitionStop) -> list[LogDirectory]:
        """Rename what there is of the log if it is to be deleted; the directories to be synced."""
        directories = self._directories
        if not stop.delete:
            return []
        if stop.key in directories.quarantined:
            remove_quarantined(directories, stop.key, DirectoryKind.DELETED)
        directories.discard_unfinished(stop.key)
        deleted = directories.get(stop.key)
        touched = directories.delete(stop.key)
        if deleted is not None and deleted.topic_id not in (None, NO_TOPIC_ID):
            self._hosted.deleted.add(stop.key, deleted.topic_id, stop.leader_epoch)
        return touched


def _is_same_topic(log: Log, topic_id: TopicId) -> bool:
    """A log without a topic id, from before topics had ids, gets the id of the request."""
    if log.topic_id in (None, NO_TOPIC_ID):
        if topic_id != NO_TOPIC_ID:
            log.set_topic_id(topic_id)
        return True
    return topic_id in (NO_TOPIC_ID, log.topic_id)
