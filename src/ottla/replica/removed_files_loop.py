"""Detects files that were removed while the broker runs, and marks their partitions offline.

Owns when the broker checks its files: each log directory by its path, and of the logs only those
that took records since the last check. The kernel accepts writes to a removed file, and syncs it,
without an error.

An acks=all append that waits for a flush is never acknowledged from a removed file (`flush_loop`);
this loop is for acks=0 and acks=1, and for directories without writes.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.log.directories.log_directories import LogDirectories
from ottla.log.flush import removed_file_error
from ottla.model.ids import Offset
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

EVERY_S: Final = 0.25
"""How long acks=1 may be answered from files that are gone. A look is a stat for each directory, on
the pool, and an fstat (2 µs) for each partition that took records since the last one."""
TURN: Final = 512
"""Logs whose end is compared between two turns of the loop."""


class RemovedFilesLoop:
    def __init__(self, hosted: HostedPartitions, directories: LogDirectories) -> None:
        self._hosted = hosted
        self._directories = directories
        self._ends: dict[HostedPartition, Offset] = {}
        """How far each log reached at the last look."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.check()

    async def check(self) -> None:
        """Mark directories and logs offline whose files are gone."""
        for directory in self._directories.online:
            try:
                await self._hosted.environment.thread_pool.run(directory.check_in_place)
            except OSError as error:
                self._directories.failed(directory.path, error)
        before, self._ends = self._ends, {}
        for index, partition in enumerate(self._hosted):
            end = self._ends[partition] = partition.log.end_offset
            if before.get(partition) != end and self._hosted.find(partition.key) is partition:
                missing = removed_file_error(partition.log)
                if missing is not None:
                    self._hosted.fail(partition, missing)
            if index % TURN == TURN - 1:
                await asyncio.sleep(0)
