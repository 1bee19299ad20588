"""Opening every log of a broker at its start: off the loop, several at a time, with progress.

Owns the pace. Never serves anything: after `load` each partition is open, or known to be offline.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, TypeAlias

from ottla.config.dynamic import DynamicConfig
from ottla.log.directories import LogDirectories
from ottla.log.loading import Loading, Pending
from ottla.log.log import CorruptLog, Log
from ottla.model.clock import Clock
from ottla.model.ids import TopicPartition
from ottla.replica.surroundings import Off

log = logging.getLogger(__name__)

CHUNK: Final = 64
PROGRESS_EVERY_MS: Final = 2_000

Loaded: TypeAlias = tuple[Pending, Log | CorruptLog | OSError]


async def load(
    directories: LogDirectories, config: DynamicConfig, off: Off, clock: Clock
) -> list[TopicPartition]:
    """Load what the directories hold; the partitions that must stay offline."""
    corrupt: list[TopicPartition] = []
    loading = Loading(directories)
    pending = loading.pending()
    chunks = [pending[at : at + CHUNK] for at in range(0, len(pending), CHUNK)]
    threads = asyncio.Semaphore(
        max(1, config.current.num_recovery_threads_per_data_dir * len(directories.online))
    )
    progress = _Progress(len(pending), clock)

    async def one(chunk: list[Pending]) -> None:
        async with threads:
            loaded = await off.run(_load_chunk, chunk, config)
        for what, result in loaded:
            if isinstance(result, Log):
                loading.admit(what, result)
            elif isinstance(result, CorruptLog):
                log.error("%s stays offline: %s", what.partition, result)
                corrupt.append(what.partition)
            else:
                directories.failed(what.directory.path, result)
        progress.add(len(loaded))

    async with asyncio.TaskGroup() as tasks:
        for chunk in chunks:
            tasks.create_task(one(chunk))
    loading.ready()
    return corrupt


def _load_chunk(chunk: Sequence[Pending], config: DynamicConfig) -> list[Loaded]:
    loaded: list[Loaded] = []
    for pending in chunk:
        try:
            loaded.append((pending, pending.load(config.topic(pending.partition.topic))))
        except (CorruptLog, OSError) as fault:
            loaded.append((pending, fault))
    return loaded


class _Progress:
    """Says how far it is, when it takes long enough for somebody to wonder."""

    def __init__(self, total: int, clock: Clock) -> None:
        self._total = total
        self._clock = clock
        self._done = 0
        self._said_ms = clock.mono_ms()

    def add(self, count: int) -> None:
        self._done += count
        now_ms = self._clock.mono_ms()
        if now_ms - self._said_ms >= PROGRESS_EVERY_MS:
            self._said_ms = now_ms
            log.info("opened %d of %d partitions", self._done, self._total)
