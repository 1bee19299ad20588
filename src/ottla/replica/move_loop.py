"""Partitions on their way to another log directory, a step at a time.

Owns the pace: one step for each copy, then a turn for others. When a copy has caught up, the swap
happens between two appends, and the partition goes on under its new log.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from ottla.log.directories import LogDirectories
from ottla.log.moves import ReplicaMoves
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.replica.hosted import Hosted

log = logging.getLogger(__name__)


class MoveLoop:
    def __init__(self, hosted: Hosted, directories: LogDirectories) -> None:
        self._hosted = hosted
        self._directories = directories
        self._moves = ReplicaMoves(directories)
        self._wanted = asyncio.Event()

    def begin(self, key: TopicPartition, path: Path) -> None:
        """Begin a move; a refusal if there is nothing to move, or nowhere."""
        self._moves.begin(key, path)
        self._wanted.set()

    async def run(self) -> None:
        if self._directories.futures:  # left over from before a restart
            self._wanted.set()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while self._directories.futures:
                for key in list(self._directories.futures):
                    self._step(key)
                    await asyncio.sleep(0)

    def _step(self, key: TopicPartition) -> None:
        partition = self._hosted.find(key)
        try:
            if not self._moves.copy(key):
                return
            if partition is None or partition.flushing or partition.rewriting is not None:
                return  # what is under way belongs to the old log: next turn
            partition.log = self._moves.finish(key)
            log.info("%s moved to %s", key, partition.log.dir.parent)
        except KafkaError as gone:
            log.info("the move of %s ends: %s", key, gone)
            self._directories.futures.pop(key, None)
        except OSError as error:
            log.error("the move of %s failed: %s", key, error)
