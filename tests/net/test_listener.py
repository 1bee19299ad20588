"""A listener on real sockets, on the standard loop and on uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from pathlib import Path

import pytest

from ottla.net.channel import Channel
from ottla.net.limits import NetLimits
from ottla.net.listener import Listener, RequestSlot
from tests.fakes.async_tests import LoopFactory
from tests.fakes.file_slice import FakeSlice
from tests.net.frames import number_of, numbers_in, reply, request
from tests.net.loopback import Client, Place, Served, serving, until
from tests.net.rig import Parked, echo

LOOPS: list[LoopFactory] = [asyncio.new_event_loop]
with contextlib.suppress(ImportError):  # the extra `speed` may not be installed
    import uvloop

    LOOPS.append(uvloop.new_event_loop)

on_every_loop = pytest.mark.parametrize("loop_factory", LOOPS)


def files_open() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.spec("NET-01", "NET-03", "NET-24", "NET-26", "NET-28", "NET-36")
@on_every_loop
async def test_requests_of_several_clients_are_answered_in_order(loop_factory: LoopFactory) -> None:
    async with serving(echo) as served:
        clients = [await served.client() for _ in range(5)]
        for client in clients:
            client.writer.write(b"".join(map(request, range(300))))
        for client in clients:
            assert await client.numbers(300) == list(range(300))
        assert served.listener.connection_count == 5


@pytest.mark.spec("NET-08")
@on_every_loop
async def test_connections_that_wait_to_be_accepted_are_read_without_another_word(
    loop_factory: LoopFactory,
) -> None:
    """Their requests were sent before the loop had a chance to accept them."""

    async with serving(echo) as served:
        with contextlib.ExitStack() as stack:
            address = ("127.0.0.1", served.port)
            early = [
                stack.enter_context(socket.create_connection(address, timeout=10))
                for _ in range(30)
            ]
            for number, each in enumerate(early):
                each.sendall(request(number))
            assert served.network.connection_counts.total == 0
            for number, each in enumerate(early):
                each.setblocking(False)
                loop = asyncio.get_running_loop()
                reply = await asyncio.wait_for(loop.sock_recv(each, 1_000), 10)
                assert numbers_in(reply) == [number]
            assert served.network.connection_counts.total == 30


@on_every_loop
async def test_large_frames_arrive_whole_in_both_directions(loop_factory: LoopFactory) -> None:
    body = os.urandom(5_000_000)

    def mirror(frame: memoryview, slot: RequestSlot) -> None:
        slot.reply([struct.pack(">i", len(frame)), bytes(frame)])

    async with serving(mirror) as served:
        client = await served.client()
        for _ in range(3):
            client.writer.write(struct.pack(">i", len(body)) + body)
            assert await client.reply() == struct.pack(">i", len(body)) + body


@on_every_loop
@pytest.mark.parametrize("limit", [102_400, -1])
async def test_a_connection_that_expects_large_replies_gets_a_larger_send_buffer(
    loop_factory: LoopFactory, limit: int
) -> None:
    """Unless the kernel sizes it."""

    def enlarge(frame: memoryview, slot: RequestSlot) -> None:
        slot.peer.on_large_replies()
        echo(frame, slot)

    async with serving(enlarge, NetLimits(socket_send_buffer_bytes=limit)) as served:
        client = await served.client()
        sizes = []
        for number in range(2):
            [channel] = served.network.live
            assert isinstance(channel, Channel)
            plain = channel._transport.get_extra_info("socket")
            sizes.append(plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
            client.writer.write(request(number))
            assert await client.numbers(1) == [number]
        assert (sizes[1] > sizes[0]) is (limit > 0)


class Unread(FakeSlice):
    """A slice whose bytes the process may not look at."""

    def read(self) -> bytes:
        raise AssertionError("the bytes went through the process")


@pytest.mark.spec("LOG-97", "LOG-98")
@on_every_loop
async def test_a_file_goes_to_the_socket_without_passing_through_the_process(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    content = os.urandom(300_000)
    path.write_bytes(content)

    def fetch(_: memoryview, slot: RequestSlot) -> None:
        slot.reply([struct.pack(">i", len(content)), Unread(path, 0, len(content))])

    async with serving(fetch) as served:
        client = await served.client()
        client.writer.write(request(1))
        assert (await client.reply())[4:] == content


@on_every_loop
async def test_files_are_sent_between_the_bytes_around_them_also_to_a_slow_reader(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    content = os.urandom(6_000_000)
    path.write_bytes(content)
    body = b"head" + content[1_000:5_001_000] + b"between" + content[:500] + b"tail"

    def fetch(_: memoryview, slot: RequestSlot) -> None:
        slot.reply(
            [
                struct.pack(">i", len(body)) + b"head",
                FakeSlice(path, 1_000, 5_000_000),
                b"between",
                FakeSlice(path, 0, 500, cold=True),
                b"tail",
            ]
        )

    async with serving(fetch) as served:
        client = await served.client()
        client.writer.write(request(1) + request(2) + request(3))
        await until(lambda: any(live.unsent for live in served.network.live))
        for _ in range(3):
            assert (await client.reply())[4:] == body


@on_every_loop
async def test_a_client_that_goes_away_in_the_middle_costs_nobody_anything(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(8_000_000))

    def fetch(frame: memoryview, slot: RequestSlot) -> None:
        if number_of(frame) == 1:
            slot.reply([struct.pack(">i", 8_000_000), FakeSlice(path, 0, 8_000_000)])
        else:
            echo(frame, slot)

    async with serving(fetch) as served:
        before = files_open()
        rude, steady = await served.client(), await served.client()
        rude.writer.write(request(1))
        await until(lambda: any(live.unsent for live in served.network.live))
        rude.writer.transport.abort()
        await until(lambda: served.listener.connection_count == 1)
        steady.writer.write(request(2))
        assert await steady.numbers(1) == [2]
        await until(lambda: files_open() <= before + 2)  # the steady one: two ends


@on_every_loop
async def test_a_late_answer_never_reaches_a_connection_that_took_over_the_number(
    loop_factory: LoopFactory,
) -> None:
    parked = Parked()

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        parked(frame, slot) if number_of(frame) == 1 else echo(frame, slot)

    async with serving(answer) as served:
        first = await served.client()
        first.writer.write(request(1))
        await until(lambda: 1 in parked.slots)
        first.writer.transport.abort()
        await until(lambda: served.listener.connection_count == 0)
        second = await served.client()  # the kernel hands out the lowest number free
        parked.answer(1)
        second.writer.write(request(2))
        assert await second.numbers(1) == [2]


@pytest.mark.spec("NET-17")
@on_every_loop
@pytest.mark.parametrize("bad", [b"GET / HTTP/1.0\r\n\r\n", b"\xff\xff\xff\xff", b"\0\0\0\0"])
async def test_a_stranger_is_hung_up_on(loop_factory: LoopFactory, bad: bytes) -> None:
    async with serving(echo) as served:
        stranger, client = await served.client(), await served.client()
        stranger.writer.write(bad)
        assert await stranger.hung_up()
        client.writer.write(request(1))
        assert await client.numbers(1) == [1]


@pytest.mark.spec("NET-39")
@on_every_loop
async def test_connections_over_the_limit_are_hung_up_on(loop_factory: LoopFactory) -> None:
    async with serving(echo, NetLimits(max_connections_per_ip=2)) as served:
        welcome = [await served.client(), await served.client()]
        await until(lambda: served.listener.connection_count == 2)
        assert await (await served.client()).hung_up()
        for client in welcome:
            client.writer.write(request(1))
            assert await client.numbers(1) == [1]


async def stopped_with(served: Served, parked: Parked, drain_ms: int) -> Client:
    client = await served.client()
    client.writer.write(request(1) + request(2)[:6])
    await until(lambda: 1 in parked.slots)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(served.listener.stop(drain_ms))
        await asyncio.sleep(0)
        if drain_ms:
            parked.answer(1)
    return client


@on_every_loop
async def test_stopping_lets_started_requests_finish_and_accepts_no_more(
    loop_factory: LoopFactory,
) -> None:
    parked = Parked()

    async with serving(parked) as served:
        client = await stopped_with(served, parked, 10_000)
        assert await client.numbers(1) == [1]
        assert await client.hung_up()
        with pytest.raises(OSError):
            await served.client()


@on_every_loop
async def test_stopping_does_not_wait_longer_than_it_was_told_to(loop_factory: LoopFactory) -> None:
    parked = Parked()

    async with serving(parked) as served:
        client = await stopped_with(served, parked, 0)
        assert await client.hung_up()
        parked.answer(1)


@pytest.mark.spec("NET-02", "NET-34", "NET-35")
@pytest.mark.real_loop
async def test_every_listener_has_its_own_socket_and_they_share_the_rest() -> None:
    async with serving(echo) as served:
        other = Listener(
            Place("CONTROLLER"), lambda _, slot: slot.reply([reply(42)]), served.network,
            control_plane=True,
        )  # fmt: skip
        served_too = Served(served.network, other, await other.start())
        here, there = await served.client(), await served_too.client()
        here.writer.write(request(1))
        there.writer.write(request(1))
        assert await here.numbers(1) == [1]
        assert await there.numbers(1) == [42]
        assert served.network.connection_counts.total == 2
        assert other.connection_count == 1
        await served_too.hang_up()
        await other.stop(1_000)
        here.writer.write(request(2))
        assert await here.numbers(1) == [2]


@pytest.mark.spec("NET-36")
@on_every_loop
async def test_a_bound_listener_knows_its_port_and_lets_nobody_in_before_it_serves(
    loop_factory: LoopFactory,
) -> None:
    async with serving(echo) as served:
        later = Listener(Place("LATER"), echo, served.network)
        served_later = Served(served.network, later, await later.bind())
        assert served_later.port > 0
        with pytest.raises(OSError):
            await served_later.client()
        await later.serve()
        client = await served_later.client()
        client.writer.write(request(1))
        assert await client.numbers(1) == [1]
        await served_later.hang_up()
        await later.stop(1_000)


@pytest.mark.real_loop
async def test_a_port_that_is_taken_is_an_error_at_start() -> None:
    async with serving(echo) as served:
        twin = Listener(Place(port=served.port), echo, served.network)
        with pytest.raises(OSError):
            await twin.start()
        await twin.stop(0)


@pytest.mark.spec("NET-20")
@pytest.mark.real_loop
async def test_hundreds_of_idle_connections_keep_no_receive_memory() -> None:
    async with serving(echo) as served:
        clients = [await served.client() for _ in range(200)]
        for client in clients:
            client.writer.write(request(1) + request(2)[:5])
        for client in clients:
            assert await client.numbers(1) == [1]
        assert served.network.buffers.kept_bytes == 0


@pytest.mark.spec("NET-36")
@on_every_loop
@pytest.mark.parametrize("passes", range(5))
async def test_who_comes_in_the_moment_of_a_stop_is_not_forgotten(
    loop_factory: LoopFactory, passes: int
) -> None:
    async with serving(echo) as served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as late:
            for _ in range(passes):
                await asyncio.sleep(0)
            await served.listener.stop(1_000)
            with contextlib.suppress(ConnectionResetError):
                assert late.recv(1) == b""
