"""Closing every log of a broker at its end: a clean stop is one after which nothing is recovered.

Owns the order: every log is flushed and closed before its directory is called clean. Never decides
what that takes: a log closes itself. A log waits for the disk several times, so they close side by
side, as many as are loaded side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ottla.broker.log_tasks import ProgressInterval, run_in_chunks
from ottla.log.directories.log_directories import HostedLog, LogDirectories

Failure: TypeAlias = tuple[HostedLog, OSError]


async def close(directories: LogDirectories, pace: ProgressInterval) -> None:
    """Flush and close what the directories hold, and say of each that was well that it was."""

    def fail(failure: Failure) -> None:
        held, error = failure
        directories.failed(held.directory.path, error)

    every = [*directories.held.values(), *directories.futures.values()]
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
