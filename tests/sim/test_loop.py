"""Virtual time, processes that die, and work that would be a thread's."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from tests.sim.loop import NothingLeft, Process, SimClock, SimLoop, bury
from tests.sim.trace import Trace


def run(loop: SimLoop, story: Coroutine[Any, Any, Any], *others: Process) -> Any:
    test = Process("test")
    with test.running():
        result = loop.run_until_complete(story)
    loop.let_go([test, *others])
    bury()
    return result


def a_loop(seed: int = 0) -> SimLoop:
    return SimLoop(Random(seed), Trace())


def test_an_hour_of_waiting_takes_no_time_and_shows_on_the_clock() -> None:
    loop = a_loop()
    clock = SimClock(loop)
    before_ms = clock.mono_ms()
    run(loop, asyncio.sleep(3_600))
    assert clock.mono_ms() - before_ms == 3_600_000


def test_waiting_for_what_never_comes_is_an_error_and_no_hang() -> None:
    async def story() -> None:
        await asyncio.get_running_loop().create_future()

    loop, test = a_loop(), Process("test")
    with test.running(), pytest.raises(NothingLeft):
        loop.run_until_complete(story())
    loop.let_go([test])
    bury()


def test_the_dead_run_no_further_line_not_even_to_clean_up() -> None:
    said: list[str] = []

    async def victim() -> None:
        try:
            said.append("begun")
            await asyncio.sleep(1)
            said.append("went on")
        finally:
            said.append("cleaned up")

    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        with process.running():
            task = loop.create_task(victim())
            loop.call_later(2, said.append, "timer")
        await asyncio.sleep(0.5)
        loop.kill(process)
        await asyncio.sleep(10)
        assert not task.done()
        return list(said)

    process = Process("victim")
    assert run(a_loop(), story(), process) == ["begun"]


def test_what_the_dead_waited_for_does_not_wake_them() -> None:
    woken: list[str] = []

    async def victim(gate: asyncio.Future[None]) -> None:
        await gate
        woken.append("woken")

    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        gate = loop.create_future()
        with process.running():
            task = loop.create_task(victim(gate))
        await asyncio.sleep(0.1)
        loop.kill(process)
        gate.set_result(None)
        await asyncio.sleep(1)
        assert not task.done()
        return list(woken)

    process = Process("victim")
    assert run(a_loop(), story(), process) == []


def test_work_off_the_loop_takes_virtual_time_and_gives_its_result_or_its_error() -> None:
    async def story() -> tuple[int, str]:
        loop = asyncio.get_running_loop()
        before = loop.time()
        result = await loop.run_in_executor(None, lambda: 6 * 7)
        assert loop.time() > before
        try:
            await loop.run_in_executor(None, lambda: 1 // 0)
        except ZeroDivisionError as error:
            return result, str(error)
        return result, "no error"

    assert run(a_loop(), story()) == (42, "integer division or modulo by zero")


def test_work_of_a_process_that_died_meanwhile_is_not_done() -> None:
    done: list[str] = []

    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        loop.slowness = 1_000
        with process.running():
            loop.run_in_executor(None, done.append, "flushed")
        loop.kill(process)
        await asyncio.sleep(100)
        return list(done)

    process = Process("victim")
    assert run(a_loop(), story(), process) == []


def test_an_exception_nobody_caught_is_remembered() -> None:
    def fail() -> None:
        raise ValueError("nobody caught me")

    async def story() -> None:
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(1)

    loop = a_loop()
    run(loop, story())
    assert len(loop.unhandled) == 1
    assert "nobody caught me" in loop.unhandled[0]


def test_a_paused_process_runs_nothing_and_then_everything_in_order() -> None:
    said: list[str] = []
    paused = Process("paused")

    async def victim() -> None:
        for number in range(3):
            said.append(f"victim {number}")
            await asyncio.sleep(1)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        with paused.running():
            task = loop.create_task(victim())
        await asyncio.sleep(0.5)
        loop.pause(paused)
        with paused.running():
            loop.call_soon(said.append, "asked meanwhile")
            loop.call_later(2, said.append, "timer set meanwhile")
        await asyncio.sleep(10)
        assert said == ["victim 0"]
        loop.resume(paused)
        await task
        assert said[1] == "asked meanwhile"
        assert sorted(said[2:4]) == ["timer set meanwhile", "victim 1"]
        assert said[4] == "victim 2"

    run(a_loop(), story(), paused)


def test_a_paused_process_can_be_killed() -> None:
    said: list[str] = []
    paused = Process("paused")

    async def victim() -> None:
        await asyncio.sleep(1)
        said.append("went on")

    async def story() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        with paused.running():
            task = loop.create_task(victim())
        await asyncio.sleep(0.5)
        loop.pause(paused)
        loop.kill(paused)
        loop.resume(paused)
        await asyncio.sleep(5)
        assert not said
        assert not task.done()

    run(a_loop(), story(), paused)
