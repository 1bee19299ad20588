"""The log directories of one broker, and the partitions in them.

Owns: which partition is where, what waits for removal, which directory has failed.
Never: knows who leads, decides what goes, waits for others. An OSError in one directory fails
that directory alone: its partitions are gone from here, and `on_failure` hears of it.

To start: `open`, `identity`, `claim`, then `loading`. To stop: `close`. All of it but the `run` of
what is returned belongs to the thread that appends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.directory_checkpoints import DirectoryCheckpoints
from ottla.log.directories.meta_properties import Identity, MetaProperties, agreed
from ottla.log.directories.names import DirectoryKind, name_of
from ottla.log.files import Disk
from ottla.log.log import Log
from ottla.log.recovery import log_loader
from ottla.log.recovery.log_loader import LogLocation
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import BrokerId, TopicId, TopicPartition

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig
from collections.abc import Iterable
from itertools import chain
from typing import Final

from ottla.model.ids import Offset

logger = logging.getLogger(__name__)


class HostedLog(NamedTuple):
    """A log and the directory it is in."""

    log: Log
    directory: LogDirectory


class DirectoryRemoval(NamedTuple):
    """A partition's directory that is to be removed; `run` may take a while, on any thread."""

    due_ms: int
    directory: LogDirectory
    path: Path

    def run(self) -> None:
        self.directory.disk.remove_tree(self.path)


class PendingRemovals:
    """Directories that wait for their removal."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[DirectoryRemoval] = []

    def add(self, directory: LogDirectory, path: Path, delay_ms: int) -> None:
        self._waiting.append(DirectoryRemoval(self._clock.wall_ms() + delay_ms, directory, path))

    def due(self) -> list[DirectoryRemoval]:
        """What may be removed by now. Whoever asks, runs them."""
        now_ms = self._clock.wall_ms()
        due = [one for one in self._waiting if one.due_ms <= now_ms]
        self._waiting = [one for one in self._waiting if one.due_ms > now_ms]
        return [one for one in due if one.directory.online]


class LogDirectories:
    """Every partition this broker holds."""

    def __init__(self, paths: Sequence[Path], disk: Disk, clock: Clock, dice: Random) -> None:
        self.all = [LogDirectory(path, disk) for path in paths]
        self.held: dict[TopicPartition, HostedLog] = {}
        self.futures: dict[
            TopicPartition, HostedLog
        ] = {}  # copies on their way to another directory
        self.preferred: dict[TopicPartition, LogDirectory] = {}  # where a new partition shall go
        self.checkpoints = DirectoryCheckpoints(self)
        self.removals = PendingRemovals(clock)
        self.on_failure: Callable[[LogDirectory, list[TopicPartition]], None] | None = None
        self._disk = disk
        self._clock = clock
        self._dice = dice

    @property
    def first(self) -> Path:
        """Where what belongs to the whole broker is kept."""
        return self.all[0].path

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.all if directory.online]

    @property
    def place(self) -> LogLocation:
        """What a log that is opened now is opened with."""
        return LogLocation(self._disk, self._dice, self._clock.wall_ms())

    # Starting and stopping

    def open(self) -> None:
        """Lock every directory and read whose it is; one that cannot be used is left out."""
        for directory in self.all:
            with self.guard(directory):
                directory.open()
        if not self.online:
            reasons = "; ".join(f"{one.path}: {one.failure}" for one in self.all)
            raise UserError(f"no log directory can be used: {reasons}")

    def identity(self, configured_id: BrokerId | None) -> Identity:
        """The broker and the cluster that the directories belong to, as far as they know."""
        return agreed({one.path: one.meta for one in self.online}, configured_id)

    def claim(self, broker_id: BrokerId, cluster_id: str) -> frozenset[UUID]:
        """Write down in each directory whose it is; the ids of the directories themselves."""
        for directory in self.online:
            known = directory.meta
            own_id = known.directory_id or self.unique()
            with self.guard(directory):
                directory.claim(MetaProperties(broker_id, cluster_id, own_id, known.version))
        return frozenset(one.meta.directory_id for one in self.online if one.meta.directory_id)

    def close(self, broker_epoch: int = -1) -> None:
        """Flush and close every log, write the checkpoints, and only then say it was clean."""
        for directory in self.online:
            with self.guard(directory):
                for held in (*self.held.values(), *self.futures.values()):
                    if held.directory is directory:
                        held.log.close()
                for write in self.checkpoints.of(directory):
                    write.run()
                directory.mark_clean(broker_epoch)
        self.release()

    def release(self) -> None:
        """Let go of the directories without a word about how it went."""
        for directory in self.all:
            directory.release()

    # Partitions

    def get(self, partition: TopicPartition) -> Log | None:
        held = self.held.get(partition)
        return None if held is None else held.log

    def create(self, partition: TopicPartition, topic_id: TopicId, config: TopicConfig) -> Log:
        """A new partition: where somebody asked for it, else where the fewest are."""
        assert partition not in self.held, f"{partition} is there already"
        directory = self.preferred.pop(partition, None)
        if directory is None or not directory.online:
            directory = self._emptiest()
        with self.guard(directory, reraise=True):
            self.checkpoints.forget(partition, directory)
            path = directory.path / str(partition)
            log = log_loader.create(partition, path, config, self.place, topic_id)
        self.held[partition] = HostedLog(log, directory)
        return log

    def delete(self, partition: TopicPartition) -> list[LogDirectory]:
        """Rename the partition's directory out of the way; it is removed a while later.

        That is durable once `LogDirectory.sync` has run for those returned; for many partitions at
        once is enough.
        """
        touched: list[LogDirectory] = []
        for held in (self.held.pop(partition, None), self.futures.pop(partition, None)):
            if held is not None:
                with self.guard(held.directory, reraise=True):
                    self.discard(held, durably=False)
                touched.append(held.directory)
        return touched

    def discard(self, held: HostedLog, *, durably: bool = True) -> None:
        """Have a log removed that is no longer anybody's."""
        path = renamed(held, DirectoryKind.DELETED, self.unique(), durably=durably)
        self.removals.add(held.directory, path, held.log.config.file_delete_delay_ms)

    def unique(self) -> UUID:
        """An id that nothing else has."""
        return UUID(int=self._dice.getrandbits(128), version=4)

    # Failure

    def failed(self, path: Path, error: OSError) -> list[TopicPartition]:
        """A directory cannot be trusted any more; the partitions that went with it."""
        return [p for one in self.online if one.path == path for p in self._fail(one, error)]

    @contextmanager
    def guard(self, directory: LogDirectory, *, reraise: bool = False) -> Iterator[None]:
        """What goes wrong in here is the end of that directory, and of nothing else."""
        try:
            yield
        except OSError as error:
            self._fail(directory, error)
            if reraise:
                raise

    def _fail(self, directory: LogDirectory, error: OSError) -> list[TopicPartition]:
        directory.failure = _reason(directory, error)
        lost = sorted(p for p, held in self.held.items() if held.directory is directory)
        if self.online:  # else whoever stops the broker for it says so
            logger.error("log directory %s failed, %d partitions with it: %s",
                         directory.path, len(lost), error)  # fmt: skip
        self.held = {p: held for p, held in self.held.items() if held.directory is not directory}
        self.futures = {p: h for p, h in self.futures.items() if h.directory is not directory}
        if self.on_failure is not None:
            self.on_failure(directory, lost)
        return lost

    def _emptiest(self) -> LogDirectory:
        if len(self.online) == 1:
            return self.online[0]
        counts = {id(directory): 0 for directory in self.online}
        for held in self.held.values():
            counts[id(held.directory)] += 1
        if not counts:
            raise KafkaError(ErrorCode.kafka_storage_error, "every log directory has failed")
        return min(self.online, key=lambda directory: counts[id(directory)])


def _reason(directory: LogDirectory, error: OSError) -> str:
    """Why a directory failed, with the file it failed on."""
    reason = error.strerror or str(error)
    at_itself = error.filename in (None, str(directory.path))
    return reason if at_itself else f"{reason}: {error.filename}"


def renamed(held: HostedLog, kind: DirectoryKind, unique: UUID, *, durably: bool = True) -> Path:
    """Give a log's directory the name of another kind, in the same place."""
    path = held.directory.path / name_of(held.log.partition, kind, unique)
    held.log.rename_dir(path, durably=durably)
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
    """Looked at one by one; those that are there when the report is made."""


def describe(directories: LogDirectories) -> list[DirectoryReport]:
    return [_directory(directories, one) for one in directories.all]


def _directory(directories: LogDirectories, one: LogDirectory) -> DirectoryReport:
    if not one.online:
        return DirectoryReport(one.path, one.failure, UNKNOWN, UNKNOWN, [])
    try:
        total, usable = one.disk.total_bytes(one.path), one.disk.free_bytes(one.path)
    except OSError:
        total = usable = UNKNOWN
    return DirectoryReport(one.path, None, total, usable, _replicas(directories, one))


def _replicas(directories: LogDirectories, one: LogDirectory) -> Iterable[ReplicaReport]:
    held = list(directories.held.items())  # some may come and go while others are looked at
    futures = list(directories.futures.items())
    return chain(
        (_current(partition, kept) for partition, kept in held if kept.directory is one),
        (
            _future(directories, partition, copy)
            for partition, copy in futures
            if copy.directory is one
        ),
    )


def _current(partition: TopicPartition, held: HostedLog) -> ReplicaReport:
    lag = max(held.log.high_watermark - held.log.end_offset, 0)
    return ReplicaReport(partition, held.log.size, lag, is_future=False)


def _future(
    directories: LogDirectories, partition: TopicPartition, copy: HostedLog
) -> ReplicaReport:
    current = directories.get(partition) or copy.log  # its own directory may have failed
    lag = max(current.end_offset - copy.log.end_offset, 0)
    return ReplicaReport(partition, copy.log.size, lag, is_future=True)
