"""Log directories with data in them, and the threads that load and close them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from ottla.broker.log_tasks import Parallelism, load
from ottla.config.dynamic import DynamicConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.model.ids import BrokerId, TopicPartition
from ottla.replica.environment import ThreadPool
from tests.fakes.data_side import data_side
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.inline_pool import InlinePool
from tests.fakes.virtual_loop import LoopClock


def opened(disk: ForgettingDisk, *dirs: str) -> LogDirectories:
    paths = [Path(directory) for directory in dirs or ("/data",)]
    directories = LogDirectories(paths, disk, LoopClock(), Random(1))
    directories.open()
    directories.claim(BrokerId(0), "cluster")
    return directories


async def filled(count: int, dirs: tuple[str, ...] = ("/data",)) -> ForgettingDisk:
    disk = ForgettingDisk()
    async with data_side(disk=disk, dirs=dirs) as side:
        for index in range(count):
            key = TopicPartition("t", index)
            await side.lead(key)
            await side.append(b"%d" % index, key=key)
    disk.kill()
    return disk


def two_threads() -> Parallelism:
    return Parallelism(ThreadPool(asyncio.get_running_loop(), InlinePool()), 2, LoopClock())


async def loaded(directories: LogDirectories) -> list[TopicPartition]:
    return await load(directories, DynamicConfig({}), two_threads())
