"""Where work that may block is done."""

from __future__ import annotations

import asyncio

import pytest

from ottla.replica.environment import ThreadPool
from tests.fakes.inline_pool import InlinePool


async def test_work_is_done_by_the_pool_and_its_result_comes_back_to_the_loop() -> None:
    pool = InlinePool()
    pool.held = True
    thread_pool = ThreadPool(asyncio.get_running_loop(), pool)
    waiting = thread_pool.run(divmod, 7, 2)
    await asyncio.sleep(0)
    assert not waiting.done()
    pool.run_all()
    assert await waiting == (3, 1)


async def test_what_goes_wrong_comes_back_too() -> None:
    thread_pool = ThreadPool(asyncio.get_running_loop(), InlinePool())
    with pytest.raises(ZeroDivisionError):
        await thread_pool.run(divmod, 7, 0)
