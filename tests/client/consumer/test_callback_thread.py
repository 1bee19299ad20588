from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from ottla.client.consumer.callback_thread import CallbackThread
from ottla.client.loop_thread import LoopThread
from ottla.model.errors import UserError


@pytest.fixture
def callbacks() -> Iterator[CallbackThread]:
    thread = LoopThread("callbacks-under-test")
    thread.start()
    yield CallbackThread(thread)
    thread.stop()


@pytest.mark.spec("CON-26")
def test_user_code_runs_on_the_thread_that_waits(callbacks: CallbackThread) -> None:
    async def work() -> tuple[str, object]:
        here = threading.current_thread().name
        return here, await callbacks.invoke(lambda: threading.current_thread().name)

    assert callbacks.run(work()) == ("callbacks-under-test", threading.current_thread().name)


@pytest.mark.spec("CON-27")
def test_user_code_may_send_another_errand_meanwhile(callbacks: CallbackThread) -> None:
    async def inner() -> object:
        return await callbacks.invoke(lambda: "innermost")

    async def outer() -> object:
        return await callbacks.invoke(lambda: callbacks.run(inner()))

    assert callbacks.run(outer()) == "innermost"


def test_what_user_code_raises_comes_back_through_the_loop(callbacks: CallbackThread) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    async def work() -> str:
        with pytest.raises(ZeroDivisionError):
            await callbacks.invoke(broken)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        callbacks.run(work())


def test_a_coroutine_cannot_be_called_back_on_a_thread(callbacks: CallbackThread) -> None:
    async def listener() -> None:
        raise AssertionError("nobody awaits it")

    with pytest.raises(UserError, match=r"ottla\.aio\.Consumer"):
        callbacks.run(callbacks.invoke(listener))


def test_an_errand_may_fail_before_anybody_is_asked_for_anything(callbacks: CallbackThread) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise TimeoutError("late")

    with pytest.raises(TimeoutError, match="late"):
        callbacks.run(work())
