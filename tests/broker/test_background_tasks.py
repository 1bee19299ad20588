"""Work that is started on the way, and what becomes of it while a broker ends."""

from __future__ import annotations

import asyncio

from ottla.broker.app import TaskStarter


async def fail() -> None:
    raise ValueError("a part of the broker failed")


async def test_work_is_begun_while_the_broker_runs() -> None:
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    async with asyncio.TaskGroup() as tasks:
        assert TaskStarter(tasks)(work())
        await done.wait()


async def test_work_that_comes_while_the_broker_ends_is_not_begun_and_nobody_is_blamed() -> None:
    begun: list[str] = []

    async def work() -> None:
        begun.append("late")

    answers: list[object] = []
    try:
        async with asyncio.TaskGroup() as tasks:
            spawn = TaskStarter(tasks)
            spawn(fail())
            try:
                await asyncio.sleep(1)
            finally:
                answers.append(spawn(work()))
    except* ValueError:
        answers.append(spawn(work()))
    assert answers == [None, None]
    assert not begun


async def test_work_that_waits_for_what_never_comes_ends_with_the_broker() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    async with asyncio.TaskGroup() as tasks:
        spawn = TaskStarter(tasks)
        spawn(work())
        await asyncio.sleep(1)
        await spawn.cancel()
    assert ended == ["work"]
