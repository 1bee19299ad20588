"""Compaction, over time: the dirtiest log first, a step at a time, off the loop.

Owns which log is being compacted, how far each has been, and the pace. Never decides which records
are kept (`log/compaction/batch_filter.py`) or which log is dirty (`log/compaction/plan.py`).
Reading and copying run on the pool, on closed segments; only the swap runs on the loop, between two
requests.
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
        self._cleaned = registry.counter(f"{group}_cleaned_bytes_total", "Bytes read to compact.")
        self._rounds = registry.counter(f"{group}_rounds_total", "Logs compacted.")
        registry.gauge(
            f"{group}_uncleanable_partitions_count",
            "Partitions that cannot be compacted because something in them cannot be read.",
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
        partition, dirt = chosen
        settings = self._config.current
        memory = CleanerMemory(
            settings.log_cleaner_dedupe_buffer_size, settings.log_cleaner_io_buffer_load_factor
        )
        one, now_ms = partition.log, self._hosted.around.clock.wall_ms()
        try:
            cleaning = LogCleaning(one, dirt, memory, now_ms)
            await self._carry_out(partition, cleaning)
            if self._is_current(one):
                await self._remember(partition.key, cleaning.end)
        except CleaningAborted as moved:
            log.info("%s", moved)
        except CorruptBatch as fault:
            log.error("%s cannot be compacted: %s", partition.key, fault)
            self._uncleanable[partition.key] = one
        except OSError as error:
            if self._is_current(one):
                self._hosted.fail(partition, error)
            else:
                log.info("%s: deleted or moved while it was being compacted", one.partition)
        return True

    async def _remember(self, key: TopicPartition, end: Offset) -> None:
        self._rounds.value += 1
        for write in self._checkpoints.cleaned(key, end):
            await self._hosted.around.off.run(write.run)

    def _is_current(self, one: Log) -> bool:
        """An await is a gap: by now the partition may be gone, or be another of that name."""
        partition = self._hosted.find(one.partition)
        return partition is not None and partition.log is one

    def _choose(self) -> tuple[HostedPartition, DirtyLog] | None:
        now_ms = self._hosted.around.clock.wall_ms()
        plans: dict[TopicPartition, tuple[DirtyLog, plan.Lags]] = {}
        for partition in self._hosted:
            one = partition.log
            if "compact" not in one.config.cleanup_policy:
                continue
            if self._uncleanable.get(partition.key) is one:
                continue
            known = self._checkpoints.cleaned_offset(partition.key)
            wishes = lags(one)
            plans[partition.key] = plan.dirty_log_of(extent(one), known, wishes, now_ms), wishes
        key = plan.dirtiest_log(plans)
        found = None if key is None else self._hosted.find(key)
        return None if key is None or found is None else (found, plans[key][0])

    async def _carry_out(self, partition: HostedPartition, cleaning: LogCleaning) -> None:
        """What overtook a dropped record is on the disk before the record goes."""
        off = self._hosted.around.off
        steps: Iterator[Step] = cleaning.steps()
        swapped = False
        while True:
            step = await off.run(next, steps, DONE)
            if step is None:
                return
            if isinstance(step, SegmentSwap):
                await self._flushes.until(partition, cleaning.read_to)
                if not swapped:  # or a start after a crash could take a gap for a lost tail
                    for write in self._checkpoints.recovery_points():
                        await off.run(write.run)
                    swapped = True
                step.perform(self._hosted.around.clock.wall_ms())
            else:
                self._cleaned.value += step.bytes_read
                await self._keep_pace(step)

    async def _keep_pace(self, step: Progress) -> None:
        """No faster than the operator allows, reading and writing together."""
        allowed = self._config.current.log_cleaner_io_max_bytes_per_second
        if 0 < allowed < float("inf"):
            await asyncio.sleep((step.bytes_read + step.bytes_written) / allowed)
