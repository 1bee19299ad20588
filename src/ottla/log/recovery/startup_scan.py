"""Finding the partitions of a broker at startup.

Owns: which logs are to be loaded, and cleaning up after an interrupted move or deletion. Never:
reads a log itself, or starts a thread: the caller runs `PendingLog.load` on any number of threads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.log.directories.checkpoint_file import HIGH_WATERMARKS, RECOVERY_POINTS, START_OFFSETS
from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import HostedLog, LogDirectories, rename_log_dir
from ottla.log.directories.names import DirectoryKind, parse
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
    checkpointed: CheckpointedState

    def load(self, config: TopicConfig) -> Log:
        """CorruptLog when this partition cannot be served, OSError when the directory failed."""
        return log_loader.load(self.partition, self.path, config, self.place, self.checkpointed)


class StartupScan:
    """One startup: load each of `pending`, `admit` it, then call `ready`."""

    def __init__(self, directories: LogDirectories) -> None:
        self._directories = directories

    def pending(self) -> list[PendingLog]:
        """The logs to load. Directories marked for deletion are scheduled for removal."""
        pending: list[PendingLog] = []
        for directory in self._directories.online:
            with self._directories.guard(directory):
                pending.extend(self._pending_in(directory))
        self._find_lost_logs()
        return pending

    def admit(self, pending: PendingLog, log: Log) -> None:
        """Add a loaded log to the broker's logs.

        A move interrupted between its two renames leaves a partition in two directories, complete
        in both: the one with the larger end offset is served, the other is renamed to a stray.
        """
        partition, directory = pending.partition, pending.directory
        if not directory.online:
            return
        watermark = directory.offsets(HIGH_WATERMARKS).get(partition)
        if watermark is not None:
            if watermark > log.end_offset:
                logger.warning(
                    "%s: the log ends at offset %d, below its checkpointed high watermark %d; "
                    "records were lost here, the leader may still have them",
                    partition,
                    log.end_offset,
                    watermark,
                )
            log.set_high_watermark(watermark)
        if pending.kind is DirectoryKind.FUTURE:
            self._directories.futures[partition] = HostedLog(log, directory)
            return
        serving, other = HostedLog(log, directory), self._directories.logs.get(partition)
        if other is not None:
            if other.log.end_offset >= log.end_offset:
                serving, other = other, serving
            logger.warning(
                "%s: found in more than one log directory; serving %s, renaming %s to a stray",
                partition,
                serving.log.dir,
                other.log.dir,
            )
            with self._directories.guard(other.directory):
                rename_log_dir(other, DirectoryKind.STRAY, self._directories.unique())
        self._directories.logs[partition] = serving

    def ready(self) -> None:
        """All logs are loaded: from here on a stop is unclean unless `close` marks it clean."""
        for directory in self._directories.online:
            with self._directories.guard(directory):
                directory.unmark_clean()

    def _find_lost_logs(self) -> None:
        """Note the partitions that had records, as the checkpoints say, and are nowhere now."""
        present: set[TopicPartition] = set()
        for directory in self._directories.online:
            with self._directories.guard(directory):
                names = map(parse, directory.disk.list(directory.path))
                present.update(named.partition for named in names if named is not None)
        for directory in self._directories.online:
            had = {**directory.offsets(HIGH_WATERMARKS)}
            for partition, offset in directory.offsets(RECOVERY_POINTS).items():
                had[partition] = max(offset, had.get(partition, 0))
            directory.lost_logs = {
                partition: offset
                for partition, offset in had.items()
                if offset > 0 and partition not in present
            }

    def _pending_in(self, directory: LogDirectory) -> Iterator[PendingLog]:
        place, clean = self._directories.place, directory.was_stopped_cleanly
        recovery_points = directory.offsets(RECOVERY_POINTS)
        starts = directory.offsets(START_OFFSETS)
        for name, parsed in directory.partitions().items():
            partition, path = parsed.partition, directory.path / name
            if parsed.kind is DirectoryKind.DELETED:
                self._directories.removals.add(directory, path, delay_ms=0)
                continue
            checkpointed = CheckpointedState(
                clean, recovery_points.get(partition, 0), starts.get(partition, 0)
            )
            if parsed.kind is DirectoryKind.FUTURE:  # the checkpoints are of the current log
                checkpointed = CheckpointedState(clean)
            yield PendingLog(partition, parsed.kind, directory, path, place, checkpointed)
