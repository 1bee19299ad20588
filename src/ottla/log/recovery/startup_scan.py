"""How the partitions of a broker are found and taken in at its start.

Owns: what there is to load, and what a stop at an odd moment left behind. Never: reads a log
itself, or starts a thread: `PendingLog.load` may run on as many as one likes, while the caller says
how far it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.log.directories.checkpoint_file import HIGH_WATERMARKS, RECOVERY_POINTS, START_OFFSETS
from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import HostedLog, LogDirectories, renamed
from ottla.log.directories.names import DirectoryKind
from ottla.log.log import Log
from ottla.log.recovery import log_loader
from ottla.log.recovery.log_loader import CheckpointedState, LogLocation
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig

logger = logging.getLogger(__name__)


class PendingLog(NamedTuple):
    """A partition that is to be loaded."""

    partition: TopicPartition
    kind: DirectoryKind
    directory: LogDirectory
    path: Path
    place: LogLocation
    known: CheckpointedState

    def load(self, config: TopicConfig) -> Log:
        """CorruptLog when this partition cannot be served, OSError when the directory failed."""
        return log_loader.load(self.partition, self.path, config, self.place, self.known)


class StartupScan:
    """A start: load each of `pending`, `admit` it, and say `ready`."""

    def __init__(self, directories: LogDirectories) -> None:
        self._directories = directories

    def pending(self) -> list[PendingLog]:
        """What there is to load. What was to be removed at the last stop is, soon."""
        found: list[PendingLog] = []
        for directory in self._directories.online:
            with self._directories.guard(directory):
                found.extend(self._pending_in(directory))
        return found

    def admit(self, pending: PendingLog, log: Log) -> None:
        """A loaded log is from now on one of ours.

        A move that was cut short between its two renames leaves a partition in two directories,
        each with all of it: the one that reaches further is kept, the other put aside.
        """
        partition, directory = pending.partition, pending.directory
        if not directory.online:
            return
        watermark = directory.offsets(HIGH_WATERMARKS).get(partition)
        if watermark is not None:
            log.set_high_watermark(watermark)
        if pending.kind is DirectoryKind.FUTURE:
            self._directories.futures[partition] = HostedLog(log, directory)
            return
        kept, other = HostedLog(log, directory), self._directories.held.get(partition)
        if other is not None:
            if other.log.end_offset >= log.end_offset:
                kept, other = other, kept
            logger.warning("%s is there twice: %s is put aside", partition, other.log.dir)
            with self._directories.guard(other.directory):
                renamed(other, DirectoryKind.STRAY, self._directories.unique())
        self._directories.held[partition] = kept

    def ready(self) -> None:
        """All is loaded: from here on a stop is unclean until `close` has said otherwise."""
        for directory in self._directories.online:
            with self._directories.guard(directory):
                directory.unmark_clean()

    def _pending_in(self, directory: LogDirectory) -> Iterator[PendingLog]:
        place, clean = self._directories.place, directory.was_stopped_cleanly
        recovery_points = directory.offsets(RECOVERY_POINTS)
        starts = directory.offsets(START_OFFSETS)
        for name, named in directory.partitions().items():
            partition, path = named.partition, directory.path / name
            if named.kind is DirectoryKind.DELETED:
                self._directories.removals.add(directory, path, delay_ms=0)
                continue
            known = CheckpointedState(
                clean, recovery_points.get(partition, 0), starts.get(partition, 0)
            )
            if named.kind is DirectoryKind.FUTURE:  # the checkpoints speak of the partition itself
                known = CheckpointedState(clean)
            yield PendingLog(partition, named.kind, directory, path, place, known)
