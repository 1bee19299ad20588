"""The log directories of one broker, and the partitions in them.

Owns: which partition is in which directory, pending removals, which directory has failed.
Never: knows who leads, decides what is deleted, waits. An OSError in one directory fails that
directory alone: its partitions are removed from `logs`, and `on_failure` is called.

To start: `open`, `identity`, `claim`, then `recovery.startup_scan`. To stop: `close`. All of it but
the `run` of what is returned belongs to the thread that appends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.directory_checkpoints import DirectoryCheckpoints
from ottla.log.directories.meta_properties import Identity, MetaProperties, common_identity
from ottla.log.directories.names import DirectoryKind, name_of
from ottla.log.files import Disk, OutOfResources
from ottla.log.log import Log
from ottla.log.recovery import log_loader
from ottla.log.recovery.log_loader import LogLocation
from ottla.model.clock import Clock, MonoMs, WallMs
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import BrokerId, Offset, TopicId, TopicPartition

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig

logger = logging.getLogger(__name__)

REPORT_EVERY_MS: Final = 60_000


class HostedLog(NamedTuple):
    """A log and the directory it is in."""

    log: Log
    directory: LogDirectory


class DirectoryRemoval(NamedTuple):
    """A partition's directory that is to be removed; `run` may take a while, on any thread."""

    due_ms: WallMs
    directory: LogDirectory
    path: Path

    def run(self) -> None:
        self.directory.disk.remove_tree(self.path)


class PendingRemovals:
    """Partition directories that are to be removed later."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[DirectoryRemoval] = []

    def add(self, directory: LogDirectory, path: Path, delay_ms: int) -> None:
        self._waiting.append(
            DirectoryRemoval(WallMs(self._clock.wall_ms() + delay_ms), directory, path)
        )

    def retry(self, removal: DirectoryRemoval) -> None:
        """It could not be removed for a passing reason: it is due again."""
        self._waiting.append(removal)

    def due(self) -> list[DirectoryRemoval]:
        """The removals that are due now; the caller runs them."""
        now_ms = self._clock.wall_ms()
        due = [removal for removal in self._waiting if removal.due_ms <= now_ms]
        self._waiting = [removal for removal in self._waiting if removal.due_ms > now_ms]
        return [removal for removal in due if removal.directory.online]


class LogDirectories:
    """Every partition this broker holds."""

    def __init__(self, paths: Sequence[Path], disk: Disk, clock: Clock, random: Random) -> None:
        self.all = [LogDirectory(path, disk) for path in paths]
        self.logs: dict[TopicPartition, HostedLog] = {}
        self.futures: dict[TopicPartition, HostedLog] = {}  # copies being moved to a directory
        self.preferred: dict[TopicPartition, LogDirectory] = {}  # for partitions not created yet
        self.quarantined: dict[TopicPartition, LogDirectory] = {}  # corrupt logs, not in `logs`
        self.unfinished: dict[TopicPartition, LogDirectory] = {}  # created in part, not in `logs`
        self.checkpoints = DirectoryCheckpoints(self)
        self.removals = PendingRemovals(clock)
        self.on_failure: Callable[[LogDirectory, list[TopicPartition]], None] | None = None
        self._disk = disk
        self._clock = clock
        self._random = random
        self._reported_ms: MonoMs | None = None

    @property
    def first(self) -> Path:
        """Where what belongs to the whole broker is stored."""
        return self.all[0].path

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.all if directory.online]

    @property
    def place(self) -> LogLocation:
        """What a log that is opened now is opened with."""
        return LogLocation(self._disk, self._random, self._clock.wall_ms())

    # Starting and stopping

    def open(self) -> None:
        """Lock every directory and read its meta.properties; unusable ones are ignored."""
        for directory in self.all:
            with self.guard(directory, starting=True):
                directory.open()
        if not self.online:
            reasons = "; ".join(f"{directory.path}: {directory.failure}" for directory in self.all)
            raise UserError(f"no usable log directory: {reasons}")

    def identity(self, configured_id: BrokerId | None) -> Identity:
        """The broker and the cluster that the directories belong to, as far as they know."""
        return common_identity(
            {directory.path: directory.meta for directory in self.online}, configured_id
        )

    def claim(self, broker_id: BrokerId, cluster_id: str) -> frozenset[UUID]:
        """Write broker and cluster id into each directory; the ids of the directories."""
        for directory in self.online:
            meta = directory.meta
            own_id = meta.directory_id or self.unique()
            with self.guard(directory, starting=True):
                directory.claim(MetaProperties(broker_id, cluster_id, own_id, meta.version))
        return frozenset(
            directory.meta.directory_id for directory in self.online if directory.meta.directory_id
        )

    def close(self, broker_epoch: int = -1) -> None:
        """Flush and close every log, write the checkpoints, and only then mark the stop clean."""
        for directory in self.online:
            with self.guard(directory):
                for hosted in (*self.logs.values(), *self.futures.values()):
                    if hosted.directory is directory:
                        hosted.log.close()
                for write in self.checkpoints.of(directory):
                    write.run()
                directory.mark_clean(broker_epoch)
        self.release()

    def release(self) -> None:
        """Unlock the directories; whether the stop is clean stays as it is."""
        for directory in self.all:
            directory.release()

    # Partitions

    def get(self, partition: TopicPartition) -> Log | None:
        hosted = self.logs.get(partition)
        return None if hosted is None else hosted.log

    def has_lost(self, partition: TopicPartition) -> bool:
        """Whether a log with records was here at an earlier start, and is gone."""
        return any(partition in directory.lost_logs for directory in self.all)

    def create(self, partition: TopicPartition, topic_id: TopicId, config: TopicConfig) -> Log:
        """A new partition: in its preferred directory, else in the one with the fewest.

        After `OutOfResources` the next attempt is made in the same directory: part of it is there.
        """
        assert partition not in self.logs, f"{partition} already exists"
        directory = self.preferred.pop(partition, None)
        if directory is None or not directory.online:
            directory = self._emptiest()
        self.unfinished[partition] = self.preferred[partition] = directory
        with self.guard(directory, reraise=True):
            for each in self.online:
                each.lost_logs.pop(partition, None)
            self.checkpoints.forget(partition, directory)
            path = directory.path / str(partition)
            log = log_loader.create(partition, path, config, self.place, topic_id)
        del self.unfinished[partition], self.preferred[partition]
        self.logs[partition] = HostedLog(log, directory)
        return log

    def discard_unfinished(self, partition: TopicPartition) -> None:
        """Schedule the removal of what there is of a partition that could not be created."""
        directory = self.unfinished.get(partition)
        if directory is None or not directory.online:
            return
        path = directory.path / name_of(partition, DirectoryKind.DELETED, self.unique())
        with self.guard(directory, reraise=True):
            if directory.disk.exists(directory.path / str(partition)):
                directory.disk.rename(directory.path / str(partition), path)
                self.removals.add(directory, path, delay_ms=0)
        del self.unfinished[partition]
        self.preferred.pop(partition, None)

    def delete(self, partition: TopicPartition) -> list[LogDirectory]:
        """Rename the partition's directory; it is removed after `file.delete.delay.ms`.

        The rename is durable once `LogDirectory.sync` has run for the directories returned; one
        sync covers many partitions.
        """
        touched: list[LogDirectory] = []
        for logs in (self.logs, self.futures):
            hosted = logs.get(partition)
            if hosted is not None:
                with self.guard(hosted.directory, reraise=True):
                    self.discard(hosted, durably=False)
                del logs[partition]  # only now: what could not be renamed is still there
                touched.append(hosted.directory)
        return touched

    def discard(self, hosted: HostedLog, *, durably: bool = True) -> None:
        """Schedule the removal of a log that is not used any more."""
        path = rename_log_dir(hosted, DirectoryKind.DELETED, self.unique(), durably=durably)
        self.removals.add(hosted.directory, path, hosted.log.config.file_delete_delay_ms)

    def unique(self) -> UUID:
        """A random UUID."""
        return UUID(int=self._random.getrandbits(128), version=4)

    # Failure

    def failed(self, path: Path, error: OSError) -> list[TopicPartition]:
        """Take a directory offline; the partitions that were in it."""
        directories = [directory for directory in self.online if directory.path == path]
        return [lost for directory in directories for lost in self._fail(directory, error)]

    @contextmanager
    def guard(
        self, directory: LogDirectory, *, reraise: bool = False, starting: bool = False
    ) -> Iterator[None]:
        """An OSError in the block takes this directory offline, and nothing else.

        `OutOfResources` does not: at the start it is raised, for the directory is not in use yet.
        """
        try:
            yield
        except OSError as error:
            self._fail(directory, error)
            if reraise or (starting and directory.online):
                raise

    def _fail(self, directory: LogDirectory, error: OSError) -> list[TopicPartition]:
        if isinstance(error, OutOfResources):
            self._report(error)
            return []
        directory.failure = _reason(directory, error)
        lost = sorted(p for p, hosted in self.logs.items() if hosted.directory is directory)
        if self.online:  # else the caller stops the broker and logs it
            logger.error("log directory %s failed; taking %d partitions offline: %s",
                         directory.path, len(lost), error)  # fmt: skip
        self.logs = {
            p: hosted for p, hosted in self.logs.items() if hosted.directory is not directory
        }
        self.futures = {p: h for p, h in self.futures.items() if h.directory is not directory}
        self.quarantined = {p: d for p, d in self.quarantined.items() if d is not directory}
        if self.on_failure is not None:
            self.on_failure(directory, lost)
        return lost

    def _report(self, error: OutOfResources) -> None:
        """Log it, once in a while: it may concern every request."""
        now_ms = self._clock.mono_ms()
        if self._reported_ms is None or now_ms - self._reported_ms >= REPORT_EVERY_MS:
            self._reported_ms = now_ms
            logger.error("cannot open a file, requests are refused: %s", error)

    def _emptiest(self) -> LogDirectory:
        if len(self.online) == 1:
            return self.online[0]
        counts = {id(directory): 0 for directory in self.online}
        for hosted in self.logs.values():
            counts[id(hosted.directory)] += 1
        if not counts:
            raise KafkaError(
                ErrorCode.kafka_storage_error, "all log directories of this broker have failed"
            )
        return min(self.online, key=lambda directory: counts[id(directory)])


def _reason(directory: LogDirectory, error: OSError) -> str:
    """Why a directory failed, with the file it failed on."""
    reason = error.strerror or str(error)
    at_itself = error.filename in (None, str(directory.path))
    return reason if at_itself else f"{reason}: {error.filename}"


def rename_log_dir(
    hosted: HostedLog, kind: DirectoryKind, unique: UUID, *, durably: bool = True
) -> Path:
    """Give a log's directory the name of another kind, in the same place."""
    path = hosted.directory.path / name_of(hosted.log.partition, kind, unique)
    hosted.log.rename_dir(path, durably=durably)
    return path


def rename_to_stray(directories: LogDirectories, partition: TopicPartition) -> Path:
    """Stop serving a partition's log; its directory stays for the operator. Returns the path."""
    hosted = directories.logs[partition]
    future = directories.futures.get(partition)
    if future is not None:
        with directories.guard(future.directory, reraise=True):
            directories.discard(future)
        del directories.futures[partition]
    with directories.guard(hosted.directory, reraise=True):
        path = rename_log_dir(hosted, DirectoryKind.STRAY, directories.unique())
    del directories.logs[partition]
    return path


def remove_quarantined(
    directories: LogDirectories, partition: TopicPartition, kind: DirectoryKind
) -> Path:
    """Give a corrupt log's directory the name of another kind, so that a new one can take its
    place, in the same log directory. Returns the new path."""
    directory = directories.quarantined[partition]
    path = directory.path / name_of(partition, kind, directories.unique())
    with directories.guard(directory, reraise=True):
        directory.disk.rename(directory.path / str(partition), path)
        del directories.quarantined[partition]
        if kind is DirectoryKind.DELETED:
            directories.removals.add(directory, path, delay_ms=0)
        else:
            directories.preferred[partition] = directory
        directory.disk.sync_dir(directory.path)
    return path


UNKNOWN: Final = -1


class ReplicaReport(NamedTuple):
    """One partition in one directory. `offset_lag` is what a copy, or a follower, still lacks."""

    partition: TopicPartition
    size: int
    offset_lag: Offset
    is_future: bool


class DirectoryReport(NamedTuple):
    path: Path
    failure: str | None
    total_bytes: int
    usable_bytes: int
    replicas: Iterable[ReplicaReport]
    """Read lazily; the replicas that exist when the report is made."""


def describe(directories: LogDirectories) -> list[DirectoryReport]:
    return [_directory(directories, directory) for directory in directories.all]


def _directory(directories: LogDirectories, directory: LogDirectory) -> DirectoryReport:
    if not directory.online:
        return DirectoryReport(directory.path, directory.failure, UNKNOWN, UNKNOWN, [])
    try:
        total, usable = (
            directory.disk.total_bytes(directory.path),
            directory.disk.free_bytes(directory.path),
        )
    except OSError:
        total = usable = UNKNOWN
    return DirectoryReport(directory.path, None, total, usable, _replicas(directories, directory))


def _replicas(directories: LogDirectories, directory: LogDirectory) -> Iterable[ReplicaReport]:
    logs = list(directories.logs.items())  # it may change while the report is read
    futures = list(directories.futures.items())
    return chain(
        (
            _current(partition, hosted)
            for partition, hosted in logs
            if hosted.directory is directory
        ),
        (
            _future(directories, partition, copy)
            for partition, copy in futures
            if copy.directory is directory
        ),
    )


def _current(partition: TopicPartition, hosted: HostedLog) -> ReplicaReport:
    lag = max(hosted.log.high_watermark - hosted.log.end_offset, 0)
    return ReplicaReport(partition, hosted.log.size, lag, is_future=False)


def _future(
    directories: LogDirectories, partition: TopicPartition, copy: HostedLog
) -> ReplicaReport:
    current = directories.get(partition) or copy.log  # its own directory may have failed
    lag = max(current.end_offset - copy.log.end_offset, 0)
    return ReplicaReport(partition, copy.log.size, lag, is_future=True)
