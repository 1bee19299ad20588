"""The compaction loop: the dirtiest log first, a step at a time, in the thread pool.

Owns which log is being compacted, how far each has been, and the throttling. Never decides which
records are kept (`log/compaction/batch_filter.py`) or which log is dirty
(`log/compaction/plan.py`). Closed segments are read and copied in the thread pool; only the swap
runs on the event loop, between two requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from ottla.config.dynamic import DynamicConfig
from ottla.log.compaction import plan
from ottla.log.compaction.cleaner import (
    CleanerMemory,
    CleaningAborted,
    LogCleaning,
    Progress,
    SegmentSwap,
    Step,
    extent,
    lags,
)
from ottla.log.compaction.plan import DirtyLog
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import Log
from ottla.model.ids import Offset, TopicPartition
from ottla.model.metrics import Registry
from ottla.protocol.records.header import CorruptBatch
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)

DONE: Final = None


class CompactionLoop:
    def __init__(
        self,
        hosted: HostedPartitions,
        directories: LogDirectories,
        config: DynamicConfig,
        flushes: FlushLoop,
        registry: Registry,
    ) -> None:
        self._hosted = hosted
        self._flushes = flushes
        self._checkpoints = directories.checkpoints
        self._config = config
        self._uncleanable: dict[TopicPartition, Log] = {}
        group = "kafka_log_logcleaner"
        self._cleaned = registry.counter(
            f"{group}_cleaned_bytes_total", "Bytes read by compaction."
        )
        self._rounds = registry.counter(f"{group}_rounds_total", "Logs compacted.")
        registry.gauge(
            f"{group}_uncleanable_partitions_count",
            "Partitions excluded from compaction because a batch in them is corrupt.",
            lambda: sum(map(self._is_current, self._uncleanable.values())),
        )

    async def run(self) -> None:
        while True:
            if self._config.current.log_cleaner_enable and await self.compact_one():
                continue
            await asyncio.sleep(self._config.current.log_cleaner_backoff_ms / 1000)

    async def compact_one(self) -> bool:
        """One round over the log that needs it most; False when none does."""
        chosen = self._choose()
        if chosen is None:
            return False
        partition, dirty = chosen
        settings = self._config.current
        memory = CleanerMemory(
            settings.log_cleaner_dedupe_buffer_size, settings.log_cleaner_io_buffer_load_factor
        )
        partition_log, now_ms = partition.log, self._hosted.environment.clock.wall_ms()
        try:
            cleaning = LogCleaning(partition_log, dirty, memory, now_ms)
            await self._run_steps(partition, cleaning)
            if self._is_current(partition_log):
                await self._record_cleaned(partition.key, cleaning.end)
        except CleaningAborted as aborted:
            log.info("compaction aborted: %s", aborted)
        except CorruptBatch as fault:
            self._on_corrupt(partition, partition_log, fault)
        except OSError as error:
            if self._is_current(partition_log):
                self._hosted.fail(partition, error)
            else:
                log.info("compaction aborted: %s was deleted or moved meanwhile", partition.key)
        return True

    def _on_corrupt(self, partition: HostedPartition, cleaned: Log, fault: CorruptBatch) -> None:
        """Where another replica has the records the log is given up, and copied from there."""
        leadership = partition.leadership
        if leadership is None or len(leadership.isr) > 1:
            if self._is_current(cleaned):
                self._hosted.fail(partition, fault)
            return
        log.error(
            "cannot compact %s: %s; skipping it until the broker restarts", partition.key, fault
        )
        self._uncleanable[partition.key] = cleaned

    async def _record_cleaned(self, key: TopicPartition, end: Offset) -> None:
        self._rounds.value += 1
        for write in self._checkpoints.cleaned(key, end):
            await self._hosted.environment.thread_pool.run(write.run)

    def _is_current(self, partition_log: Log) -> bool:
        """After an await the partition may be deleted, moved or created anew."""
        partition = self._hosted.find(partition_log.partition)
        return partition is not None and partition.log is partition_log

    def _choose(self) -> tuple[HostedPartition, DirtyLog] | None:
        now_ms = self._hosted.environment.clock.wall_ms()
        plans: dict[TopicPartition, tuple[DirtyLog, plan.Lags]] = {}
        for partition in self._hosted:
            candidate = partition.log
            if "compact" not in candidate.config.cleanup_policy:
                continue
            if self._uncleanable.get(partition.key) is candidate:
                continue
            cleaned = self._checkpoints.cleaned_offset(partition.key)
            limits = lags(candidate)
            dirty = plan.dirty_log_of(extent(candidate), cleaned, limits, now_ms)
            plans[partition.key] = dirty, limits
        key = plan.dirtiest_log(plans)
        chosen = None if key is None else self._hosted.find(key)
        return None if key is None or chosen is None else (chosen, plans[key][0])

    async def _run_steps(self, partition: HostedPartition, cleaning: LogCleaning) -> None:
        """Flush the records that replace older ones before the older ones are removed."""
        thread_pool = self._hosted.environment.thread_pool
        steps: Iterator[Step] = cleaning.steps()
        swapped = False
        while True:
            step = await thread_pool.run(next, steps, DONE)
            if step is None:
                return
            if isinstance(step, SegmentSwap):
                await self._flushes.wait_until_flushed(partition, cleaning.read_to)
                if not swapped:  # or a start after a crash could take a gap for a lost tail
                    for write in self._checkpoints.recovery_points():
                        await thread_pool.run(write.run)
                    swapped = True
                step.perform(self._hosted.environment.clock.wall_ms())
            else:
                self._cleaned.value += step.bytes_read
                await self._throttle(step)

    async def _throttle(self, step: Progress) -> None:
        """Sleep to stay below log.cleaner.io.max.bytes.per.second, reads and writes together."""
        allowed = self._config.current.log_cleaner_io_max_bytes_per_second
        if 0 < allowed < float("inf"):
            await asyncio.sleep((step.bytes_read + step.bytes_written) / allowed)
