"""Runs user callbacks on the user's own thread while that thread waits for the event loop.

Owns the queue between the loop and the waiting thread: a listener is called by the thread that
polls, and may use the consumer, which starts another call while the first one waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from inspect import isawaitable
from queue import SimpleQueue
from typing import NamedTuple, TypeAlias, TypeVar

from ottla.client.loop_thread import LoopThread
from ottla.model.errors import UserError

T = TypeVar("T")


class CallbackRequest(NamedTuple):
    """User code to run, and the future for its result."""

    function: Callable[[], object]
    reply: asyncio.Future[object]


CallbackQueue: TypeAlias = "SimpleQueue[CallbackRequest | None]"
"""Callbacks to run, or None: the call is finished."""


class CallbackThread:
    """Runs coroutines on a loop for one thread, and their callbacks on that thread."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._queues: list[CallbackQueue] = []

    def run(self, work: Coroutine[object, None, T]) -> T:
        """Run `work` on the loop and wait; callbacks that it invokes run here."""
        queue: CallbackQueue = SimpleQueue()
        self._queues.append(queue)  # before the loop may invoke a callback
        try:
            future = self._thread.submit(work)
        except BaseException:
            self._queues.remove(queue)
            raise
        future.add_done_callback(lambda _: queue.put(None))
        try:
            while (request := queue.get()) is not None:
                self._run_callback(request)
            return future.result()
        except BaseException:  # an interrupt of the waiting thread
            future.cancel()
            raise
        finally:
            self._queues.remove(queue)

    async def invoke(self, function: Callable[[], object]) -> object:
        """On the loop: have the waiting thread call `function`."""
        reply: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._queues[-1].put(CallbackRequest(function, reply))
        return await reply

    def _run_callback(self, request: CallbackRequest) -> None:
        function, reply = request
        try:
            result = function()
            if isawaitable(result):
                getattr(result, "close", lambda: None)()
                raise UserError(
                    "a callback of this consumer cannot be a coroutine; use ottla.aio.Consumer"
                )
        except Exception as error:
            self._thread.call_soon(_set_reply, reply, None, error)
        else:
            self._thread.call_soon(_set_reply, reply, result, None)


def _set_reply(reply: asyncio.Future[object], result: object, error: Exception | None) -> None:
    if reply.done():  # the caller has stopped waiting
        return
    if error is None:
        reply.set_result(result)
    else:
        reply.set_exception(error)
