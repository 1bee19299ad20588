"""Moves partitions between log directories, a step at a time.

Owns the pace: one step of each copy, then the event loop runs other work. When a copy has caught up
it is flushed in the thread pool; then it replaces the old log between two appends.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from ottla.log.directories.log_directories import HostedLog, LogDirectories
from ottla.log.directories.replica_moves import ReplicaMoves
from ottla.log.flush import begin_flush
from ottla.log.log import Log
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.records.header import CorruptBatch
from ottla.replica.fetch.replication_quota import ReplicationQuota
from ottla.replica.hosted_partitions import HostedPartitions

log = logging.getLogger(__name__)

PAUSE_S: Final = 0.1
"""Between two looks at copies that can do nothing but wait."""


class MoveLoop:
    def __init__(
        self, hosted: HostedPartitions, directories: LogDirectories, quota: ReplicationQuota
    ) -> None:
        self._hosted = hosted
        self._quota = quota
        self._directories = directories
        self._moves = ReplicaMoves(directories)
        self._has_moves = asyncio.Event()
        self._flushed: set[Log] = set()
        """Copies that were made durable since they caught up for the first time."""

    def begin(self, key: TopicPartition, path: Path) -> None:
        """Begin a move; a refusal if there is nothing to move, nowhere, or on a failing disk."""
        try:
            self._moves.begin(key, path)
        except OSError as error:  # whether the directory has failed is known already
            raise KafkaError(ErrorCode.kafka_storage_error, str(error)) from None
        self._has_moves.set()

    async def run(self) -> None:
        if self._directories.futures:  # left over from before a restart
            self._has_moves.set()
        while True:
            await self._has_moves.wait()
            self._has_moves.clear()
            while self._directories.futures:
                if not await self._step_each():
                    await asyncio.sleep(PAUSE_S)
            self._flushed.clear()

    async def _step_each(self) -> bool:
        """A step of every copy; False when all of them can only wait."""
        progressed = False
        for key, future in list(self._directories.futures.items()):
            try:
                progressed |= await self._step(key, future)
            except KafkaError as refusal:
                log.info("cancelled move of %s to %s: %s", key, future.directory.path, refusal)
                self._moves.cancel(key)
            except CorruptBatch as fault:
                self._moves.cancel(key)
                if (partition := self._hosted.find(key)) is not None:
                    self._hosted.fail(partition, fault)
            except OSError as error:
                log.error("failed to move %s to %s: %s", key, future.directory.path, error)
                self._directories.failed(future.directory.path, error)
            await asyncio.sleep(0)
        return progressed

    async def _step(self, key: TopicPartition, future: HostedLog) -> bool:
        clock = self._hosted.environment.clock
        if self._quota.is_exceeded(clock.mono_ms()):
            return False
        size = future.log.size
        is_whole = self._moves.copy(key)
        if future.log.size > size:
            self._quota.record(future.log.size - size, clock.mono_ms())
        if not is_whole:
            return True
        if future.log not in self._flushed:
            flush = begin_flush(future.log)
            await self._hosted.environment.thread_pool.run(flush.run)
            future.log.flush_done(flush)
            if flush.whole:
                self._flushed.add(future.log)
            return True
        partition = self._hosted.find(key)
        if partition is None or partition.flushing or partition.truncating is not None:
            return False
        if partition.rewriting is not None:
            return False  # what is under way belongs to the old log
        partition.log = self._moves.finish(key)
        log.info("moved %s to %s", key, partition.log.dir.parent)
        return True
