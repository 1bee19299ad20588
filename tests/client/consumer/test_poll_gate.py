from __future__ import annotations

import asyncio

import pytest

from ottla.client.consumer.poll_gate import PollGate


async def test_work_is_done_in_a_poll_and_whoever_wanted_it_goes_on() -> None:
    rings: list[None] = []
    gate, done = PollGate(lambda: rings.append(None)), list[str]()

    async def work() -> None:
        done.append("work")

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(gate.call(work))
        await asyncio.sleep(1)
        assert (done, len(rings), gate.is_quiet) == ([], 1, False)
        await gate.run_pending()
        await waiting
    assert (done, gate.is_quiet) == (["work"], True)


async def test_an_error_of_the_users_own_is_raised_and_stops_nobody() -> None:
    gate = PollGate(lambda: None)

    async def broken() -> None:
        raise ZeroDivisionError

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(gate.call(broken))
        await asyncio.sleep(1)
        with pytest.raises(ZeroDivisionError):
            await gate.run_pending()
        await waiting
    await gate.run_pending()


async def test_failures_are_raised_one_at_a_time() -> None:
    gate = PollGate(lambda: None)
    gate.fail(KeyError("first"))
    gate.fail(KeyError("second"))
    for name in ("first", "second"):
        with pytest.raises(KeyError, match=name):
            await gate.run_pending()
    await gate.run_pending()


async def test_work_that_a_cancelled_poll_began_is_done_by_the_next() -> None:
    gate, tries = PollGate(lambda: None), list[int]()

    async def slow() -> None:
        tries.append(1)
        await asyncio.sleep(10)

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(gate.call(slow))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await gate.run_pending()
        assert not waiting.done()
        await gate.run_pending()
        await waiting
    assert len(tries) == 2


async def test_work_that_nobody_wants_any_more_is_left_undone() -> None:
    gate, done = PollGate(lambda: None), list[str]()

    async def work() -> None:
        done.append("work")

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(gate.call(work))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        await gate.run_pending()
    assert done == []
