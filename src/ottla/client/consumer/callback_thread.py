"""A thread that waits for the loop, and meanwhile runs what the loop asks of it.

Owns the way user code gets back to the user's own thread: a listener is called by the thread that
polls, and may use the consumer, which sends another errand while the first one waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from inspect import isawaitable
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ottla.client.loop_thread import LoopThread
from ottla.model.errors import UserError

T = TypeVar("T")


class CallbackRequest(NamedTuple):
    """User code to run here, and where to send what comes of it."""

    function: Callable[[], Any]
    reply: asyncio.Future[Any]


Mailbox: TypeAlias = "SimpleQueue[CallbackRequest | None]"
"""A favour that is asked, or None: the errand is done."""


class CallbackThread:
    """Coroutines done on a loop for one thread."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._mailboxes: list[Mailbox] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the loop do this and wait; user code that it calls is run here."""
        mailbox: Mailbox = SimpleQueue()
        self._mailboxes.append(mailbox)  # before the loop may ask for anything
        try:
            future = self._thread.submit(work)
        except BaseException:
            self._mailboxes.remove(mailbox)
            raise
        future.add_done_callback(lambda _: mailbox.put(None))
        try:
            while (favour := mailbox.get()) is not None:
                self._do(favour)
            return future.result()
        except BaseException:  # an interrupt of the waiting thread
            future.cancel()
            raise
        finally:
            self._mailboxes.remove(mailbox)

    async def invoke(self, function: Callable[[], Any]) -> Any:
        """On the loop: have the waiting thread call this."""
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._mailboxes[-1].put(CallbackRequest(function, reply))
        return await reply

    def _do(self, favour: CallbackRequest) -> None:
        function, reply = favour
        try:
            given = function()
            if isawaitable(given):
                getattr(given, "close", lambda: None)()
                raise UserError("a coroutine cannot be called back here; use ottla.aio.Consumer")
        except Exception as error:
            self._thread.call_soon(_settle, reply, None, error)
        else:
            self._thread.call_soon(_settle, reply, given, None)


def _settle(reply: asyncio.Future[Any], given: Any, error: Exception | None) -> None:
    if reply.done():  # whoever asked has stopped waiting
        return
    if error is None:
        reply.set_result(given)
    else:
        reply.set_exception(error)
