"""The same done to every log of a broker: off the loop, several at a time, with progress.

Owns the pace. Never knows what is done: opening and closing are `loading` and `closing`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ottla.config.dynamic import DynamicConfig
from ottla.log.directories.log_directories import HostedLog, LogDirectories
from ottla.log.log import CorruptLog, Log
from ottla.log.recovery.startup_scan import PendingLog, StartupScan
from ottla.model.clock import Clock
from ottla.model.ids import TopicPartition
from ottla.replica.environment import ThreadPool

log = logging.getLogger(__name__)

CHUNK: Final = 64
PROGRESS_EVERY_MS: Final = 2_000

Item = TypeVar("Item")
Result = TypeVar("Result")


class ProgressInterval(NamedTuple):
    """Where the work is done, how much of it at a time, and by whose clock it takes long."""

    off: ThreadPool
    threads: int
    clock: Clock


def progress_interval(
    directories: LogDirectories, config: DynamicConfig, off: ThreadPool, clock: Clock
) -> ProgressInterval:
    """Each directory is a disk, and has as many threads as the operator says."""
    a_directory = config.current.num_recovery_threads_per_data_dir
    return ProgressInterval(off, max(1, a_directory * len(directories.online)), clock)


async def run_in_chunks(
    done: str,
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Sequence[Result]],
    settle: Callable[[Result], None],
    pace: ProgressInterval,
) -> None:
    """`work` on a chunk in a thread, then `settle` each of its results on the loop."""
    threads = asyncio.Semaphore(pace.threads)
    progress = _Progress(done, len(items), pace.clock)

    async def one(chunk: Sequence[Item]) -> None:
        async with threads:
            results = await pace.off.run(work, chunk)
        for result in results:
            settle(result)
        progress.add(len(chunk))

    async with asyncio.TaskGroup() as tasks:
        for at in range(0, len(items), CHUNK):
            tasks.create_task(one(items[at : at + CHUNK]))


class _Progress:
    """Says how far it is, when it takes long enough for somebody to wonder."""

    def __init__(self, done: str, total: int, clock: Clock) -> None:
        self._what = done
        self._total = total
        self._clock = clock
        self._done = 0
        self._said_ms = clock.mono_ms()

    def add(self, count: int) -> None:
        self._done += count
        now_ms = self._clock.mono_ms()
        if now_ms - self._said_ms >= PROGRESS_EVERY_MS:
            self._said_ms = now_ms
            log.info("%s %d of %d partitions", self._what, self._done, self._total)


Failure: TypeAlias = tuple[HostedLog, OSError]


async def close(directories: LogDirectories, pace: ProgressInterval) -> None:
    """Flush and close what the directories hold, and say of each that was well that it was."""

    def fail(failure: Failure) -> None:
        held, error = failure
        directories.failed(held.directory.path, error)

    every = [*directories.logs.values(), *directories.futures.values()]
    await run_in_chunks("closed", every, _close_chunk, fail, pace)
    await pace.off.run(directories.close)  # closes them again, which is nothing to do


def _close_chunk(chunk: Sequence[HostedLog]) -> list[Failure]:
    failures: list[Failure] = []
    for held in chunk:
        try:
            held.log.close()
        except OSError as error:
            failures.append((held, error))
    return failures


Loaded: TypeAlias = tuple[PendingLog, Log | CorruptLog | OSError]


async def load(
    directories: LogDirectories, config: DynamicConfig, pace: ProgressInterval
) -> list[TopicPartition]:
    """Load what the directories hold; the partitions that must stay offline."""
    corrupt: list[TopicPartition] = []
    loading = StartupScan(directories)

    def load_chunk(chunk: Sequence[PendingLog]) -> list[Loaded]:
        return [_load(pending, config) for pending in chunk]

    def admit(loaded: Loaded) -> None:
        what, result = loaded
        if isinstance(result, Log):
            loading.admit(what, result)
        elif isinstance(result, CorruptLog):
            log.error("%s stays offline: %s", what.partition, result)
            corrupt.append(what.partition)
        else:
            directories.failed(what.directory.path, result)

    await run_in_chunks("opened", loading.pending(), load_chunk, admit, pace)
    loading.ready()
    return corrupt


def _load(pending: PendingLog, config: DynamicConfig) -> Loaded:
    try:
        return pending, pending.load(config.topic(pending.partition.topic))
    except (CorruptLog, OSError) as fault:
        return pending, fault
