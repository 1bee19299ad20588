"""Moving a partition to another log directory of the same broker.

Owns: the copy in the making, how far it is, and the moment it takes the partition's place.
Never: decides what to move, or runs by itself: the caller calls `copy` until it is True, then
`finish`.

The copy is flushed before it gets the partition's name, and has that name before the old one loses
it: a crash in between leaves the partition twice and whole, never in neither place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import HostedLog, LogDirectories
from ottla.log.directories.names import DirectoryKind, name_of
from ottla.log.follower_append import append_as_follower, base_before
from ottla.log.log import Log
from ottla.log.recovery import log_loader
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, Offset, TopicPartition
from ottla.protocol.records.header import CorruptBatch

STEP_BYTES: Final = 1 << 20


class ReplicaMoves:
    """The moves under way; their copies are `LogDirectories.futures`."""

    def __init__(self, directories: LogDirectories) -> None:
        self._directories = directories

    def begin(self, partition: TopicPartition, path: Path) -> None:
        """Move a partition there, or have it made there when it comes.

        A partition that is there already stays; a copy on its way elsewhere is given up.
        """
        target = next((one for one in self._directories.online if one.path == path), None)
        if target is None:
            raise KafkaError(
                ErrorCode.log_dir_not_found, f"{path} is not an online log directory of this broker"
            )
        current = self._directories.logs.get(partition)
        if current is None:
            self._directories.preferred[partition] = target
            raise KafkaError(
                ErrorCode.replica_not_available, f"{partition}: no replica on this broker yet"
            )
        future = self._directories.futures.get(partition)
        if future is not None and future.directory is not target:
            self.cancel(partition)
        if current.directory is not target and partition not in self._directories.futures:
            self._directories.futures[partition] = self._future(current.log, target)

    def copy(self, partition: TopicPartition) -> bool:
        """Copy a little more; whether the copy has all there is for now.

        CorruptBatch when the source is corrupt.
        """
        current, future = self._both(partition)
        source, target = current.log, future.log
        with self._directories.guard(future.directory, reraise=True):
            _truncate_like_source(source, target)
            if target.end_offset < source.end_offset:
                self._copy_some(current, target)
            target.set_high_watermark(source.high_watermark)
            if source.start_offset > target.start_offset <= target.high_watermark:
                target.raise_start_offset(min(source.start_offset, target.high_watermark))
        return target.end_offset == source.end_offset

    def finish(self, partition: TopicPartition) -> Log:
        """Copy what is left, and let the copy be the partition: the log that now is."""
        while not self.copy(partition):
            pass
        current, future = self._both(partition)
        directories = self._directories
        with directories.guard(future.directory, reraise=True):
            future.log.flush()
            directories.checkpoints.forget(partition, future.directory)
            future.log.rename_dir(future.directory.path / str(partition))
        future.log.config = current.log.config  # it may have changed since the copy was begun
        del directories.futures[partition]
        directories.logs[partition] = future
        for write in directories.checkpoints.of(future.directory):
            with directories.guard(future.directory, reraise=True):
                write.run()
        with directories.guard(current.directory):
            directories.discard(current)
        return future.log

    def _future(self, source: Log, target: LogDirectory) -> HostedLog:
        name = name_of(source.partition, DirectoryKind.FUTURE, self._directories.unique())
        topic_id = source.topic_id or NO_TOPIC_ID
        with self._directories.guard(target, reraise=True):
            log = log_loader.create(
                source.partition,
                target.path / name,
                source.config,
                self._directories.place,
                topic_id,
            )
        return HostedLog(log, target)

    def _both(self, partition: TopicPartition) -> tuple[HostedLog, HostedLog]:
        current = self._directories.logs.get(partition)
        future = self._directories.futures.get(partition)
        if current is None or future is None:
            raise KafkaError(
                ErrorCode.replica_not_available, f"{partition}: replica is not being moved"
            )
        return current, future

    def cancel(self, partition: TopicPartition) -> None:
        """Let the partition stay where it is."""
        future = self._directories.futures.pop(partition, None)
        if future is not None:
            with self._directories.guard(future.directory):
                self._directories.discard(future)

    def _copy_some(self, current: HostedLog, target: Log) -> None:
        source, now_ms = current.log, self._directories.place.now_ms
        content = self._read_some(current, target.end_offset)
        if not content:  # the last offsets before the end were compacted away
            target.roll(now_ms, source.end_offset)
            return
        if target.start_offset == target.end_offset:
            base = base_before(content, target.end_offset)
            if base is not None:
                target.truncate_fully_and_start_at(base)
        try:
            append_as_follower(target, content, now_ms)
        except KafkaError as refusal:
            raise CorruptBatch(f"{source.dir}: {refusal}") from None

    def _read_some(self, current: HostedLog, offset: Offset) -> bytes:
        """A disk that cannot be read fails its own directory, not the one that is copied to."""
        source = current.log
        try:
            read = source.read(offset, STEP_BYTES, end=source.end_offset, min_one=True)
            return b"" if read.slice is None else read.slice.read()
        except OSError as error:
            self._directories.failed(current.directory.path, error)
            raise KafkaError(ErrorCode.kafka_storage_error, str(error)) from None


def _truncate_like_source(source: Log, target: Log) -> None:
    """The source may have been cut and written again, or have lost its beginning, meanwhile."""
    while target.end_offset > (common_end := _common_end(source, target)):
        target.truncate_to(common_end)
    if target.end_offset < source.start_offset:
        target.truncate_fully_and_start_at(source.start_offset)


def _common_end(source: Log, target: Log) -> Offset:
    """Up to where both were written by the same leaders, as far as one look can tell."""
    ends = [source.end_offset, target.end_offset]
    epoch = min(source.epochs.latest, target.epochs.latest)
    ends += [
        end
        for log in (source, target)
        if (end := log.epochs.end_offset(epoch, log.end_offset)[1]) >= 0
    ]
    return min(ends)
