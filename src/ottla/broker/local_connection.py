"""The controller's way to its own broker: the same frames, the same dispatch, no socket.

Owns one request at a time. Never skips a step that a request from another broker would take: what
arrives has been encoded, is decoded again, and is answered in bytes.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.model.clock import Clock
from ottla.net.request_slot import Answer, Peer, RequestSlot

SIZE_BYTES: Final = 4


class LocalConnection:
    """A `Link` whose other end is this process."""

    def __init__(self, answer: Answer, clock: Clock) -> None:
        self._answer = answer
        self._clock = clock

    async def call(self, frame: bytes) -> bytes:
        exchange = _Exchange(asyncio.get_running_loop().create_future())
        now_ns = self._clock.mono_ns()
        key = int.from_bytes(frame[SIZE_BYTES : SIZE_BYTES + 2], "big")
        self._answer(memoryview(frame)[SIZE_BYTES:], RequestSlot(exchange, key, now_ns, now_ns))
        return await exchange.reply

    async def close(self) -> None:
        return


class _Exchange:
    """The order of one: its reply is whole once it is given."""

    def __init__(self, reply: asyncio.Future[bytes]) -> None:
        self.reply = reply
        self.peer = Peer("127.0.0.1", 0, "LOCAL", "PLAINTEXT")
        self.peer.is_broker = True
        self.closed = False

    def replied(self, slot: RequestSlot) -> None:
        if self.reply.done():
            return
        parts = slot.parts or ()
        whole = b"".join(
            bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read()
            for part in parts
        )
        self.reply.set_result(whole[SIZE_BYTES:])

    def end(self, reason: str) -> None:
        self.closed = True
        if not self.reply.done():
            self.reply.set_exception(ConnectionAbortedError(reason))
