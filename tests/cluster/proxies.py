"""TCP proxies between named hosts: links that can be cut, healed, cut in one direction, or reset.

Owns: one event loop on a thread, a listening socket for each pair of hosts, and the connections
through it. Never looks into the bytes.

A cut direction holds bytes back instead of dropping them, as TCP does by sending again: after the
link is healed they arrive. Connections made meanwhile are accepted and say nothing.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar, cast

LOOPBACK: Final = "127.0.0.1"
CALL_S: Final = 10.0
Result = TypeVar("Result")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Direction(NamedTuple):
    """Bytes from one host to another."""

    source: str
    target: str


class Proxies:
    """All links of a test; every method may be called from the test's own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._links: list[Link] = []
        self._cut: set[Direction] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._do(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def link(self, source: str, target: str, address: Address) -> Address:
        """The address at which `source` reaches `target` through a proxy of its own."""
        link = Link(source, target, address, self._is_cut)
        self._links.append(link)
        return asyncio.run_coroutine_threadsafe(link.listen(), self._loop).result(CALL_S)

    def cut(self, *directions: tuple[str, str]) -> None:
        """Hold back what the first host of each pair sends to the second."""
        self._set({*self._cut, *(Direction(*pair) for pair in directions)})

    def isolate(self, host: str, *others: str) -> None:
        """Cut both directions between a host and each of the others."""
        self.cut(*((host, other) for other in others), *((other, host) for other in others))

    def heal(self) -> None:
        self._set(set())

    def reset(self, one: str, other: str) -> None:
        """End every connection between two hosts."""
        links = [link for link in self._links if {link.source, link.target} == {one, other}]

        def end() -> None:
            for link in links:
                link.reset()

        self._do(end)

    def _set(self, cut: set[Direction]) -> None:
        def change() -> None:
            self._cut = cut
            for link in self._links:
                link.update()

        self._do(change)

    def _is_cut(self, direction: Direction) -> bool:
        return direction in self._cut

    def _close(self) -> None:
        for link in self._links:
            link.close()

    def _do(self, call: Callable[[], Result]) -> Result:
        async def run() -> Result:
            return call()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(CALL_S)


class Link:
    """The connections that `source` made to `target`."""

    def __init__(
        self, source: str, target: str, address: Address, is_cut: Callable[[Direction], bool]
    ) -> None:
        self.source = source
        self.target = target
        self._address = address
        self._is_cut = is_cut
        self._server: asyncio.Server | None = None
        self._connections: set[Half] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    async def listen(self) -> Address:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, LOOPBACK, 0)
        return Address(*self._server.sockets[0].getsockname()[:2])

    def _accept(self) -> Half:
        near = Half(self, Direction(self.source, self.target))
        task = asyncio.get_running_loop().create_task(self._connect(near))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return near

    async def _connect(self, near: Half) -> None:
        """Opens the other half, once packets pass in both directions."""
        while self.is_cut(near.direction) or self.is_cut(near.backward):
            self._changed.clear()
            await self._changed.wait()
        far = Half(self, near.backward)
        try:
            await asyncio.get_running_loop().create_connection(lambda: far, *self._address)
        except OSError:
            near.abort()
            return
        near.other, far.other = far, near
        near.update()
        far.update()
        if near.ended:
            far.abort()

    def is_cut(self, direction: Direction) -> bool:
        return self._is_cut(direction)

    def update(self) -> None:
        self._changed.set()
        for half in self._connections:
            half.update()

    def add(self, half: Half) -> None:
        self._connections.add(half)

    def remove(self, half: Half) -> None:
        self._connections.discard(half)

    def reset(self) -> None:
        for half in list(self._connections):
            half.abort()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        self.reset()


class Half(asyncio.Protocol):
    """One of the two sockets of a connection: what is read here is written to the other."""

    def __init__(self, link: Link, direction: Direction) -> None:
        self.direction = direction
        self.backward = Direction(direction.target, direction.source)
        self.other: Half | None = None
        self.ended = False
        self._link = link
        self._transport: asyncio.Transport | None = None
        self._is_full = False
        self._is_reading = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._link.add(self)
        self.update()

    def update(self) -> None:
        """Read while there is somebody to write to and the direction is open."""
        if self._transport is None or self._transport.is_closing():
            return
        other = self.other
        wanted = other is not None and not other._is_full and not self._link.is_cut(self.direction)
        if wanted is not self._is_reading:
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other._transport is not None:
            self.other._transport.write(data)

    def pause_writing(self) -> None:
        self._is_full = True
        if self.other is not None:
            self.other.update()

    def resume_writing(self) -> None:
        self._is_full = False
        if self.other is not None:
            self.other.update()

    def connection_lost(self, error: Exception | None) -> None:
        self.ended = True
        self._link.remove(self)
        if self.other is not None and self.other._transport is not None:
            if error is None:
                self.other._transport.close()
            else:
                self.other.abort()

    def abort(self) -> None:
        """The peer gets a reset instead of an end."""
        self.ended = True
        if self._transport is not None and not self._transport.is_closing():
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
