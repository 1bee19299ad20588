"""Opens and closes all logs of a broker: on threads, several at a time, logging progress.

Owns how many logs are handled at a time. Never decides how a log is opened or closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ottla.config.dynamic import DynamicConfig
from ottla.log.directories.log_directories import HostedLog, LogDirectories
from ottla.log.directories.names import DirectoryKind
from ottla.log.files import OutOfResources
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


class Parallelism(NamedTuple):
    """The pool that does the work, how many of its threads are used, and the clock."""

    pool: ThreadPool
    threads: int
    clock: Clock


def parallelism(
    directories: LogDirectories, config: DynamicConfig, pool: ThreadPool, clock: Clock
) -> Parallelism:
    """`num.recovery.threads.per.data.dir` threads for each log directory."""
    per_directory = config.current.num_recovery_threads_per_data_dir
    return Parallelism(pool, max(1, per_directory * len(directories.online)), clock)


async def run_in_chunks(
    action: str,
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Sequence[Result]],
    on_result: Callable[[Result], None],
    parallelism: Parallelism,
) -> None:
    """Run `work` on each chunk in a thread, then `on_result` on the loop for each result."""
    threads = asyncio.Semaphore(parallelism.threads)
    progress = _Progress(action, len(items), parallelism.clock)

    async def run_chunk(chunk: Sequence[Item]) -> None:
        async with threads:
            results = await parallelism.pool.run(work, chunk)
        for result in results:
            on_result(result)
        progress.add(len(chunk))

    async with asyncio.TaskGroup() as tasks:
        for start in range(0, len(items), CHUNK):
            tasks.create_task(run_chunk(items[start : start + CHUNK]))


class _Progress:
    """Logs the progress of work that takes longer than PROGRESS_EVERY_MS."""

    def __init__(self, action: str, total: int, clock: Clock) -> None:
        self._action = action
        self._total = total
        self._clock = clock
        self._done_count = 0
        self._logged_ms = clock.mono_ms()

    def add(self, count: int) -> None:
        self._done_count += count
        now_ms = self._clock.mono_ms()
        if now_ms - self._logged_ms >= PROGRESS_EVERY_MS:
            self._logged_ms = now_ms
            log.info("%s %d of %d logs", self._action, self._done_count, self._total)


Failure: TypeAlias = tuple[HostedLog, OSError]


async def close(directories: LogDirectories, parallelism: Parallelism) -> None:
    """Flush and close all logs, and write the clean-shutdown marker of each healthy directory."""

    def fail(failure: Failure) -> None:
        hosted_log, error = failure
        directories.failed(hosted_log.directory.path, error)

    logs = [*directories.logs.values(), *directories.futures.values()]
    await run_in_chunks("closed", logs, _close_chunk, fail, parallelism)
    await parallelism.pool.run(directories.close)  # closing a closed log does nothing


def _close_chunk(chunk: Sequence[HostedLog]) -> list[Failure]:
    failures: list[Failure] = []
    for hosted_log in chunk:
        try:
            hosted_log.log.close()
        except OSError as error:
            failures.append((hosted_log, error))
    return failures


Loaded: TypeAlias = tuple[PendingLog, Log | CorruptLog | OSError]


async def load(
    directories: LogDirectories, config: DynamicConfig, parallelism: Parallelism
) -> list[TopicPartition]:
    """Open all logs; returns the partitions that must stay offline because they are corrupt."""
    corrupt: list[TopicPartition] = []
    scan = StartupScan(directories)

    def load_chunk(chunk: Sequence[PendingLog]) -> list[Loaded]:
        return [_load(pending, config) for pending in chunk]

    def admit(loaded: Loaded) -> None:
        pending, result = loaded
        if isinstance(result, Log):
            scan.admit(pending, result)
        elif isinstance(result, CorruptLog) and pending.kind is DirectoryKind.FUTURE:
            log.warning("removing the unfinished copy of %s: %s", pending.partition, result)
            directories.removals.add(pending.directory, pending.path, delay_ms=0)
        elif isinstance(result, CorruptLog):
            log.error("partition %s stays offline: %s", pending.partition, result)
            corrupt.append(pending.partition)
            directories.quarantined[pending.partition] = pending.directory
        elif isinstance(result, OutOfResources):
            raise result  # without this log the broker would create an empty one in its place
        else:
            directories.failed(pending.directory.path, result)

    await run_in_chunks("opened", scan.pending(), load_chunk, admit, parallelism)
    scan.ready()
    return corrupt


def _load(pending: PendingLog, config: DynamicConfig) -> Loaded:
    try:
        return pending, pending.load(config.topic(pending.partition.topic))
    except (CorruptLog, OSError) as error:
        return pending, error
