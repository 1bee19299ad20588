"""Periodic work on logs: retention, checkpoints, flushes, expiration.

Owns when each of these runs. Never decides what is deleted (`log/retention.py` does) and never
blocks the event loop for long: a few logs at a time, and disk access in the thread pool.
Compaction has a loop of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias

from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.delay.slices import finished, in_slices
from ottla.log.directories.directory import CheckpointWrite
from ottla.log.directories.directory_checkpoints import Steps
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.files import OutOfResources
from ottla.log.log import FAULTS, Log
from ottla.log.segment_deletion import delete_old_segments
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.producer_id_limit import SHORT_KEEP_MS

log = logging.getLogger(__name__)

TURN: Final = 32
"""Logs looked at between two turns of the loop."""
PURGE_EVERY_MS: Final = 5_000
COUNT_EVERY_MS: Final = 10_000
CHECK_INTERVAL_MS: Final = 10_000
"""A changed interval takes effect within this."""

Wait: TypeAlias = Callable[[BrokerConfig], int]
"""How long, in milliseconds, by the settings that hold now."""


def _after_start(config: BrokerConfig) -> int:
    """The delay after the start, which leaves the disk to the clients."""
    return config.log_initial_task_delay_ms


class MaintenanceLoop:
    def __init__(
        self,
        hosted: HostedPartitions,
        directories: LogDirectories,
        config: DynamicConfig,
        flushes: FlushLoop,
    ) -> None:
        self._hosted = hosted
        self._directories = directories
        self._checkpoints = directories.checkpoints
        self._config = config
        self._flushes = flushes
        self._clock = hosted.environment.clock

    def loops(self) -> list[Coroutine[object, None, None]]:
        return [
            self._every(
                lambda c: c.log_retention_check_interval_ms, self.retention, first=_after_start
            ),
            self._every(lambda _: PURGE_EVERY_MS, self.purge),
            self._every(
                lambda c: c.log_flush_scheduler_interval_ms, self.flush_due, first=_after_start
            ),
            self._every(
                lambda c: c.producer_id_expiration_check_interval_ms, self.expire_producers
            ),
            self._every(lambda _: COUNT_EVERY_MS, self.count_producers),
            self._every(
                lambda c: c.replica_high_watermark_checkpoint_interval_ms,
                lambda: self.write_in_steps(self._checkpoints.high_watermarks_in_steps()),
            ),
            self._every(
                lambda c: c.log_flush_offset_checkpoint_interval_ms,
                lambda: self.write(self._checkpoints.recovery_points()),
                first=_after_start,
            ),
            self._every(
                lambda c: c.log_flush_start_offset_checkpoint_interval_ms,
                lambda: self.write_in_steps(self._checkpoints.start_offsets_in_steps()),
                first=_after_start,
            ),
        ]

    async def _every(
        self,
        interval_ms: Wait,
        work: Callable[[], Coroutine[object, None, None]],
        *,
        first: Wait | None = None,
    ) -> None:
        """Run `work` periodically. The interval may change while it waits."""
        wait_ms, waited_ms = first or interval_ms, 0
        while True:
            left_ms = max(1, wait_ms(self._config.current)) - waited_ms
            if left_ms > 0:
                step_ms = min(left_ms, CHECK_INTERVAL_MS)
                await asyncio.sleep(step_ms / 1000)
                waited_ms += step_ms
                continue
            await work()
            wait_ms, waited_ms = interval_ms, 0

    async def retention(self) -> None:
        """Delete whole segments that are too old, too many, or below the log's start."""
        await self._for_each_log(lambda log: delete_old_segments(log, self._clock.wall_ms()))

    async def purge(self) -> None:
        """Remove files whose time between deletion and removal is over."""
        await self._for_each_log(lambda log: log.deleted_segments.purge(self._clock.wall_ms()))
        for removal in self._directories.removals.due():
            try:
                await self._hosted.environment.thread_pool.run(removal.run)
            except OSError as error:
                self._directories.failed(removal.directory.path, error)
                if isinstance(error, OutOfResources):
                    self._directories.removals.retry(removal)

    async def expire_producers(self) -> None:
        """Forget producers that have been silent for longer than their state is kept."""
        ids = self._hosted.environment.producer_ids
        keep_ms = ids.keep_ms(self._config.current.producer_id_expiration_ms)
        for index, partition in enumerate(self._hosted):
            for _ in partition.log.producers.expire_in_steps(self._clock.wall_ms(), keep_ms):
                await asyncio.sleep(0)
            if index % TURN == TURN - 1:
                await asyncio.sleep(0)

    async def count_producers(self) -> None:
        """Count the producer ids of all partitions; if there are many, forget idle ones sooner."""
        ids, config = self._hosted.environment.producer_ids, self._config.current
        if ids.most < 0:
            return
        await ids.recount(partition.log for partition in self._hosted)
        if ids.keep_ms(config.producer_id_expiration_ms) <= SHORT_KEEP_MS:
            await self.expire_producers()
            await ids.recount(partition.log for partition in self._hosted)

    async def flush_due(self) -> None:
        """Flush logs whose unflushed data is older than the topic's `flush.ms`."""
        now_ms = self._clock.mono_ms()
        for partition in self._hosted:
            if now_ms - partition.flushed_at_ms >= partition.log.config.flush_ms:
                self._flushes.request(partition)

    async def _for_each_log(self, work: Callable[[Log], object]) -> None:
        async for partition in in_slices(self._hosted, TURN, self._clock):
            if self._hosted.find(partition.key) is not partition:
                continue  # removed meanwhile
            try:
                work(partition.log)
                partition.watchers.report_change()  # its start may have moved
            except FAULTS as fault:
                self._hosted.fail(partition, fault)

    async def write_in_steps(self, steps: Steps) -> None:
        await self.write(await finished(steps))

    async def write(self, writes: list[CheckpointWrite]) -> None:
        for write in writes:
            try:
                await self._hosted.environment.thread_pool.run(write.run)
            except OSError as error:
                self._directories.failed(write.directory.path, error)
