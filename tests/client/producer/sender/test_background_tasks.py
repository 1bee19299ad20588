"""Small tasks on the side: one of a kind at a time, and a pause after a failure."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.client.producer.sender.background_tasks import BackgroundTasks
from ottla.client.retry import Backoff
from tests.client.rig import until
from tests.fakes.manual_time import ManualClock


class Rig:
    def __init__(self) -> None:
        self.clock = ManualClock(1_000)
        self.done = 0
        self.runs = 0
        self.go = asyncio.Event()
        self.background_tasks = BackgroundTasks(
            self.clock, Backoff(100, 100, Random(1)), self._done
        )

    def _done(self) -> None:
        self.done += 1

    async def work(self) -> None:
        self.runs += 1
        await self.go.wait()

    async def fails(self) -> None:
        self.runs += 1
        raise ConnectionError

    async def is_broken(self) -> None:
        raise ZeroDivisionError


@pytest.mark.real_loop
async def test_a_chore_that_is_under_way_is_not_begun_again() -> None:
    rig = Rig()
    await rig.background_tasks.open()
    assert [rig.background_tasks.start("a", rig.work) for _ in range(3)] == [0, 0, 0]
    assert rig.background_tasks.start("b", rig.work) == 0
    rig.go.set()
    await until(lambda: rig.done == 2)
    assert rig.runs == 2
    rig.background_tasks.start("a", rig.work)
    await until(lambda: rig.runs == 3)
    await rig.background_tasks.close()


@pytest.mark.real_loop
async def test_after_a_failure_there_is_a_pause(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    await rig.background_tasks.open()
    rig.background_tasks.start("a", rig.fails)
    await until(lambda: rig.done == 1)
    wait_ms = rig.background_tasks.start("a", rig.fails)
    assert 80 <= wait_ms <= 120
    assert rig.runs == 1
    rig.clock.ns += wait_ms * 1_000_000
    assert rig.background_tasks.start("a", rig.fails) == 0
    await until(lambda: rig.done == 2)
    assert "failed" not in caplog.text
    rig.background_tasks.start("c", rig.is_broken)
    await until(lambda: rig.done == 3)
    assert "c failed" in caplog.text
    await rig.background_tasks.close()


@pytest.mark.real_loop
async def test_at_the_end_chores_are_cancelled_and_none_is_begun() -> None:
    rig = Rig()
    await rig.background_tasks.open()
    rig.background_tasks.start("a", rig.work)
    await asyncio.sleep(0)
    await rig.background_tasks.close()
    assert rig.done == 1
    assert rig.background_tasks.start("a", rig.work) == 0
    assert rig.runs == 1
    await rig.background_tasks.close()
