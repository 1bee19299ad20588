"""The same done to every log: side by side, with a word now and then when it takes long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from ottla.broker.log_tasks import CHUNK, Parallelism, parallelism, run_in_chunks
from ottla.config.dynamic import DynamicConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.model.clock import MonoMs
from ottla.replica.environment import ThreadPool
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.inline_pool import InlinePool
from tests.fakes.virtual_loop import LoopClock

LOGGER = "ottla.broker.log_tasks"


class Slow(LoopClock):
    """Between any two looks at it three seconds pass."""

    looks = 0

    def mono_ms(self) -> MonoMs:
        self.looks += 1
        return MonoMs(self.looks * 3_000)


async def squares(count: int, clock: LoopClock) -> list[int]:
    results: list[int] = []
    threads_used = Parallelism(ThreadPool(asyncio.get_running_loop(), InlinePool()), 2, clock)

    def work(chunk: Sequence[int]) -> list[int]:
        return [item * item for item in chunk]

    await run_in_chunks("squared", range(count), work, results.append, threads_used)
    return results


@pytest.mark.parametrize("count", [0, 1, CHUNK, 2 * CHUNK + 3])
async def test_everything_is_worked_on_once_and_settled(count: int) -> None:
    assert await squares(count, LoopClock()) == [item * item for item in range(count)]


async def test_what_takes_long_says_how_far_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    await squares(CHUNK + 1, Slow())
    assert [one.getMessage() for one in caplog.records if one.name == LOGGER] == [
        f"squared {CHUNK} of {CHUNK + 1} logs",
        f"squared {CHUNK + 1} of {CHUNK + 1} logs",
    ]


async def test_what_is_quick_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    await squares(CHUNK + 1, LoopClock())
    assert [one for one in caplog.records if one.name == LOGGER] == []


@pytest.mark.spec("CFG-020", "LOG-40")
@pytest.mark.parametrize(("threads", "at_once"), [("1", 2), ("2", 4)])
async def test_each_directory_has_as_many_threads_as_the_operator_says(
    threads: str, at_once: int
) -> None:
    clock = LoopClock()
    directories = LogDirectories([Path("/a"), Path("/b")], ForgettingDisk(), clock, Random(1))
    directories.open()
    pool = InlinePool()
    pool.held = True
    config = DynamicConfig({"num.recovery.threads.per.data.dir": threads})
    threads_used = parallelism(
        directories, config, ThreadPool(asyncio.get_running_loop(), pool), clock
    )
    results: list[int] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            run_in_chunks("kept", range(6 * CHUNK), list, results.append, threads_used)
        )
        for _ in range(20):
            await asyncio.sleep(0)
        assert pool.waiting == at_once
        pool.held = False
        pool.run_all()
    assert sorted(results) == list(range(6 * CHUNK))
