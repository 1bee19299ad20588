"""Files that somebody removed under the running broker: found soon, and given up.

Owns when the broker looks for its own files. Never looks where nothing happens: a directory by its
path, and of the logs only those that took records since the last look. The kernel takes writes to
a removed file, and syncs it, without a word.

An acks=all append that waits for a flush is not acknowledged from a removed file at all
(`flush_loop`); this is for lesser acks, and for directories that nobody writes to.
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
            await self.look()

    async def look(self) -> None:
        """Give up directories and logs whose files are gone."""
        for directory in self._directories.online:
            try:
                await self._hosted.around.off.run(directory.check_in_place)
            except OSError as error:
                self._directories.failed(directory.path, error)
        before, self._ends = self._ends, {}
        for at, partition in enumerate(self._hosted):
            end = self._ends[partition] = partition.log.end_offset
            if before.get(partition) != end and self._hosted.find(partition.key) is partition:
                missing = removed_file_error(partition.log)
                if missing is not None:
                    self._hosted.fail(partition, missing)
            if at % TURN == TURN - 1:
                await asyncio.sleep(0)
