"""The four checkpoints of each log directory: what is written into them, from which logs.

Owns: taking the numbers. Never: waits for the disk, except in `forget`; what is returned is run by
the caller, on any thread.

- recovery points: below this everything is on the disk for good
- high watermarks: below this everything is replicated
- start offsets: what lies below, in a segment that is still there, was deleted
- cleaned offsets: below this the log is compacted
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.delay.slices import run_to_end
from ottla.log.directories.checkpoint_file import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
)
from ottla.log.directories.directory import CheckpointWrite, LogDirectory
from ottla.model.ids import Offset, TopicPartition

if TYPE_CHECKING:
    from ottla.log.directories.log_directories import HostedLog, LogDirectories
    from ottla.log.log import Log

Steps: TypeAlias = Generator[None, None, list[CheckpointWrite]]
LOGS_IN_A_STEP: Final = 250


class DirectoryCheckpoints:
    """The contents of the directories' checkpoint files."""

    def __init__(self, directories: LogDirectories) -> None:
        self._directories = directories

    def recovery_points(self) -> list[CheckpointWrite]:
        """Lost logs keep their entries: the next start must know of them too."""
        writes = self._write_all(RECOVERY_POINTS, lambda log: log.recovery_point)
        return [
            write.directory.checkpoint(
                RECOVERY_POINTS, {**write.directory.lost_logs, **write.offsets}
            )
            if write.directory.lost_logs
            else write
            for write in writes
        ]

    def high_watermarks(self) -> list[CheckpointWrite]:
        return run_to_end(self.high_watermarks_in_steps())

    def start_offsets(self) -> list[CheckpointWrite]:
        return run_to_end(self.start_offsets_in_steps())

    def high_watermarks_in_steps(self) -> Steps:
        """The same; the loop may have a turn at every yield."""
        return self._collect(HIGH_WATERMARKS, lambda log: log.high_watermark)

    def start_offsets_in_steps(self) -> Steps:
        return self._collect(START_OFFSETS, _start_offset)

    def cleaned(self, partition: TopicPartition, offset: Offset) -> list[CheckpointWrite]:
        """A partition is compacted up to here; none when it is gone meanwhile."""
        hosted = self._directories.logs.get(partition)
        if hosted is None:
            return []
        checkpointed = hosted.directory.offsets(CLEANED_OFFSETS)
        current = {p: cleaned for p, cleaned in checkpointed.items() if p in self._directories.logs}
        return [hosted.directory.checkpoint(CLEANED_OFFSETS, {**current, partition: offset})]

    def cleaned_offset(self, partition: TopicPartition) -> Offset | None:
        hosted = self._directories.logs.get(partition)
        return None if hosted is None else hosted.directory.offsets(CLEANED_OFFSETS).get(partition)

    def of(self, directory: LogDirectory) -> list[CheckpointWrite]:
        """The writes of one directory's checkpoints, from the current state of its logs."""
        writes = [*self.recovery_points(), *self.high_watermarks(), *self.start_offsets()]
        return [write for write in writes if write.directory is directory]

    def forget(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Remove a partition's entries, before a new partition of that name is created.

        A recovery point left over would make unflushed records look flushed, a start offset would
        hide them.
        """
        for write in self._without({partition}, directory):
            write.run()

    def forget_all(self, partitions: Collection[TopicPartition]) -> list[CheckpointWrite]:
        """The same for many partitions, in whichever directory they were; the caller writes."""
        return [
            write
            for directory in self._directories.online
            for write in self._without(partitions, directory)
        ]

    @staticmethod
    def _without(
        partitions: Collection[TopicPartition], directory: LogDirectory
    ) -> Iterator[CheckpointWrite]:
        for name in (RECOVERY_POINTS, HIGH_WATERMARKS, START_OFFSETS, CLEANED_OFFSETS):
            checkpointed = directory.offsets(name)
            stale = {partition for partition in partitions if partition in checkpointed}
            if stale:
                others = {p: offset for p, offset in checkpointed.items() if p not in stale}
                yield directory.checkpoint(name, others)

    def _collect(self, name: str, value: Callable[[Log], Offset | None]) -> Steps:
        # Not in pairs: thirty thousand new objects cost thirty milliseconds of garbage collection.
        partitions, hosted_logs = (
            list(self._directories.logs),
            list(self._directories.logs.values()),
        )
        offsets: dict[int, dict[TopicPartition, Offset]] = {
            id(directory): {} for directory in self._directories.online
        }
        for number, partition in enumerate(partitions):
            self._take(offsets, partition, hosted_logs[number], value)
            if number % LOGS_IN_A_STEP == LOGS_IN_A_STEP - 1:
                yield
        # Logs may have been removed, moved, or made anew meanwhile.
        logs = self._directories.logs
        for partition, hosted in zip(partitions, hosted_logs, strict=True):
            if logs.get(partition) is hosted:
                continue
            offsets.get(id(hosted.directory), {}).pop(partition, None)
            if partition in logs:
                self._take(offsets, partition, logs[partition], value)
        return [
            directory.checkpoint(name, offsets.get(id(directory), {}))
            for directory in self._directories.online
        ]

    @staticmethod
    def _take(
        offsets: dict[int, dict[TopicPartition, Offset]],
        partition: TopicPartition,
        hosted: HostedLog,
        value: Callable[[Log], Offset | None],
    ) -> None:
        offset = value(hosted.log)
        if offset is not None and id(hosted.directory) in offsets:
            offsets[id(hosted.directory)][partition] = offset

    def _write_all(self, name: str, value: Callable[[Log], Offset | None]) -> list[CheckpointWrite]:
        offsets: dict[int, dict[TopicPartition, Offset]] = {
            id(directory): {} for directory in self._directories.online
        }
        for partition, hosted in self._directories.logs.items():
            offset = value(hosted.log)
            if offset is not None:
                offsets[id(hosted.directory)][partition] = offset
        return [
            directory.checkpoint(name, offsets[id(directory)])
            for directory in self._directories.online
        ]


def _start_offset(log: Log) -> Offset | None:
    """None where it is the base offset of the first segment."""
    return log.start_offset if log.start_offset > log.segments.first.base_offset else None
