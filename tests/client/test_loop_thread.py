"""An event loop on a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest

from ottla.client.loop_thread import LoopThread
from ottla.model.errors import UserError


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("test-loop")
    thread.start()
    yield thread
    thread.stop()


async def name() -> str:
    return threading.current_thread().name


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def test_work_runs_there_and_its_result_comes_back(thread: LoopThread) -> None:
    assert thread.run(name()) == "test-loop"


def test_what_the_work_raises_is_raised_here(thread: LoopThread) -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    async def runs_out_of_time() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(ZeroDivisionError):
        thread.run(fails())
    with pytest.raises(TimeoutError, match="of its own"):
        thread.run(runs_out_of_time(), timeout=60)


def test_work_that_takes_too_long_is_cancelled(thread: LoopThread) -> None:
    cancelled = threading.Event()

    async def waits() -> None:
        try:
            await forever()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError, match=r"did not complete within 0\.01 s"):
        thread.run(waits(), timeout=0.01)
    assert cancelled.wait(60)


def test_waiting_on_the_loops_own_thread_is_refused_instead_of_never_ending(
    thread: LoopThread,
) -> None:
    async def waits_for_itself() -> None:
        thread.run(name())

    with pytest.raises(UserError, match="cannot wait for the client"):
        thread.run(waits_for_itself())


def test_functions_are_handed_over_without_waiting(thread: LoopThread) -> None:
    called = threading.Event()
    thread.call_soon(called.set)
    assert called.wait(60)


def test_after_its_end_it_says_so(thread: LoopThread) -> None:
    thread.stop()
    thread.stop()
    with pytest.raises(UserError, match="this client is closed"):
        thread.run(name())


def test_in_a_forked_process_it_says_that_its_thread_stayed_behind(thread: LoopThread) -> None:
    thread._pid = os.getpid() + 1  # as a child sees it
    with pytest.raises(UserError, match="created before the process forked"):
        thread.run(name())
    thread.stop()
    thread._pid = os.getpid()
    assert thread.run(name()) == "test-loop", "a child does not stop its parent's thread"
