"""Large replies: received by a thread, whole, in order, and given up when the connection ends."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest

from ottla.model.clock import SystemClock
from ottla.net.bulk_receiver import BUFFER_BYTES, LEAST_BYTES, WAKE_BYTES
from ottla.net.limits import NetLimits
from ottla.net.outbound_connection import OutboundConnection, OutboundLimits
from tests.client.rig import until

LARGE = 3 * LEAST_BYTES + 12_345
BULK = OutboundLimits(bulk_buffer_bytes=BUFFER_BYTES)
Answer = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


def request(number: int) -> bytes:
    body = b"\0\x01\0\x0c" + number.to_bytes(4, "big")
    return len(body).to_bytes(4, "big") + body


def reply(number: int, size: int = LARGE) -> bytes:
    """So many bytes that no part of it looks like another."""
    return number.to_bytes(4, "big") + Random(number).randbytes(size - 4)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@asynccontextmanager
async def linked(
    answer: Answer, limits: OutboundLimits = BULK
) -> AsyncIterator[OutboundConnection]:
    """A link to a server that answers the calls, told the number of each."""

    served: set[asyncio.Task[object]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.add(task)
        try:
            while True:
                frame = await reader.readexactly(12)
                await answer(int.from_bytes(frame[8:], "big"), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    link = OutboundConnection("127.0.0.1", port, SystemClock(), Random(1), limits)
    before = receivers()
    try:
        yield link
    finally:
        link.close()
        await until(lambda: receivers() <= before)
        server.close()
        await asyncio.gather(*served)


def receivers() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "ottla-receiver"}


async def whole(number: int, writer: asyncio.StreamWriter) -> None:
    writer.write(framed(reply(number)))


@pytest.mark.real_loop
async def test_large_and_small_replies_come_whole_and_in_order() -> None:
    async def mixed(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(framed(reply(number, LARGE if number % 2 else 10)))

    async with linked(mixed) as link:
        calls = await asyncio.gather(*(link.call(request(each)) for each in range(6)))
        for number, got in enumerate(calls):
            assert got == reply(number, LARGE if number % 2 else 10)


@pytest.mark.parametrize("left", [1, WAKE_BYTES - 1, WAKE_BYTES, WAKE_BYTES + 1])
@pytest.mark.real_loop
async def test_a_reply_that_comes_in_pieces_is_put_together(left: int) -> None:
    async def slowly(number: int, writer: asyncio.StreamWriter) -> None:
        frame = framed(reply(number))
        for start, end in ((0, 3), (3, 300_000), (300_000, -left), (len(frame) - left, None)):
            writer.write(frame[start:end])
            await writer.drain()
            await asyncio.sleep(0.02)

    async with linked(slowly) as link:
        assert await link.call(request(1)) == reply(1)
        assert await link.call(request(2)) == reply(2)


@pytest.mark.real_loop
async def test_the_loop_is_free_and_a_thread_receives_while_a_large_reply_comes() -> None:
    go_on = asyncio.Event()

    async def halves(number: int, writer: asyncio.StreamWriter) -> None:
        frame = framed(reply(number))
        writer.write(frame[: LARGE // 2])
        await go_on.wait()
        writer.write(frame[LARGE // 2 :])

    before = receivers()
    async with linked(halves) as link:
        call = asyncio.ensure_future(link.call(request(1)))
        await until(lambda: len(receivers() - before) == 1)
        assert not call.done()
        go_on.set()
        assert await call == reply(1)


@pytest.mark.real_loop
async def test_a_small_reply_needs_no_thread() -> None:
    async def small(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(framed(reply(number, LEAST_BYTES // 2)))

    before = receivers()
    async with linked(small) as link:
        assert await link.call(request(1)) == reply(1, LEAST_BYTES // 2)
        assert receivers() == before


@pytest.mark.real_loop
async def test_a_peer_that_goes_away_within_a_large_reply_fails_the_call() -> None:
    async def half(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(framed(reply(number))[: LARGE // 2])
        await writer.drain()
        writer.close()

    async with linked(half) as link:
        with pytest.raises(ConnectionError, match="closed the connection"):
            await link.call(request(1))
        assert not link.is_open


@pytest.mark.real_loop
async def test_a_large_reply_that_stops_runs_out_of_time_and_its_thread_ends() -> None:
    async def half(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(framed(reply(number))[: LARGE // 2])

    before = receivers()
    async with linked(half) as link:
        with pytest.raises(TimeoutError):
            await link.call(request(1), timeout_ms=300)
        await until(lambda: receivers() == before)


@pytest.mark.real_loop
async def test_what_somebody_keeps_is_not_written_over_by_later_replies() -> None:
    async with linked(whole) as link:
        kept = [await link.call(request(each)) for each in range(5)]
        for number, each in enumerate(kept):
            assert each == reply(number)


@pytest.mark.real_loop
async def test_memory_that_nobody_looks_at_any_more_serves_the_next_replies() -> None:
    import numpy as np

    async def place(link: OutboundConnection, number: int) -> int:
        return int(np.frombuffer(await link.call(request(number)), np.uint8).ctypes.data)

    async with linked(whole) as link:
        places = [await place(link, each) for each in range(8)]
        assert len(set(places)) <= 2


@pytest.mark.parametrize("may", [True, False])
@pytest.mark.real_loop
async def test_the_buffer_of_the_socket_is_enlarged_only_where_that_is_allowed(may: bool) -> None:
    sockets = NetLimits(socket_receive_buffer_bytes=65_536)

    bulk = BUFFER_BYTES if may else 0
    async with linked(whole, OutboundLimits(sockets=sockets, bulk_buffer_bytes=bulk)) as link:
        assert await link.call(request(1)) == reply(1)
        assert link._exchange is not None
        plain = link._exchange._transport.get_extra_info("socket")
        size = plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        assert (size > 2 * 65_536) is may
        assert not os.get_blocking(plain.fileno())
