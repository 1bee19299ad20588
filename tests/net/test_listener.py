"""A listener on real sockets, on the standard loop and on uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.model.clock import SystemClock
from ottla.model.metrics import Registry
from ottla.net.limits import NetLimits
from ottla.net.listener import Answer, Listener, RequestSlot
from ottla.net.network import Network
from ottla.net.request_metrics import RequestMetrics
from tests.fakes.file_slice import FakeSlice
from tests.net.frames import number_of, numbers_in, reply, request
from tests.net.rig import Parked, a_pass, echo

try:
    import uvloop

    RUNNERS: list[Callable[[Coroutine[Any, Any, None]], None]] = [asyncio.run, uvloop.run]
except ImportError:  # the extra `speed` is not installed
    RUNNERS = [asyncio.run]

Run = Callable[[Coroutine[Any, Any, None]], None]
on_every_loop = pytest.mark.parametrize("run", RUNNERS)


class Place(NamedTuple):
    name: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    protocol: str = "PLAINTEXT"


class Client:
    """The other side, with asyncio's own streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def reply(self) -> bytes:
        head = await self.reader.readexactly(4)
        return head + await self.reader.readexactly(struct.unpack(">i", head)[0])

    async def numbers(self, count: int) -> list[int]:
        return [numbers_in(await self.reply())[0] for _ in range(count)]

    async def hung_up(self) -> bool:
        """True once the server has closed."""
        with contextlib.suppress(ConnectionError):
            return await self.reader.read(1) == b""
        return True


class Served:
    """A listener, what it shares, and the clients that were connected."""

    def __init__(self, network: Network, listener: Listener, port: int) -> None:
        self.network = network
        self.listener = listener
        self.port = port
        self._clients: list[Client] = []

    async def client(self) -> Client:
        made = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self._clients.append(made)
        return made

    async def hang_up(self) -> None:
        for client in self._clients:
            client.writer.close()
            with contextlib.suppress(ConnectionError):
                await client.writer.wait_closed()


@contextlib.asynccontextmanager
async def serving(answer: Answer, limits: NetLimits | None = None) -> AsyncIterator[Served]:
    clock = SystemClock()
    metrics = RequestMetrics(Registry(), {0: "Produce"}, clock)
    network = Network(limits or NetLimits(), clock, metrics)
    listener = Listener(Place(), answer, network)
    served = Served(network, listener, await listener.start())
    try:
        yield served
    finally:
        await served.hang_up()
        await listener.stop(1_000)
        assert network.census.total == 0
        assert network.buffers.kept_bytes == 0


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await a_pass()


def files_open() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.spec("NET-01", "NET-03", "NET-24", "NET-26", "NET-28", "NET-36")
@on_every_loop
def test_requests_of_several_clients_are_answered_in_order(run: Run) -> None:
    async def main() -> None:
        async with serving(echo) as served:
            clients = [await served.client() for _ in range(5)]
            for client in clients:
                client.writer.write(b"".join(map(request, range(300))))
            for client in clients:
                assert await client.numbers(300) == list(range(300))
            assert served.listener.connection_count == 5

    run(main())


@pytest.mark.spec("NET-08")
@on_every_loop
def test_connections_that_wait_to_be_accepted_are_read_without_another_word(run: Run) -> None:
    """Their requests were sent before the loop had a chance to accept them."""

    async def main() -> None:
        async with serving(echo) as served:
            with contextlib.ExitStack() as stack:
                address = ("127.0.0.1", served.port)
                early = [
                    stack.enter_context(socket.create_connection(address, timeout=10))
                    for _ in range(30)
                ]
                for number, each in enumerate(early):
                    each.sendall(request(number))
                assert served.network.census.total == 0
                for number, each in enumerate(early):
                    each.setblocking(False)
                    loop = asyncio.get_running_loop()
                    reply = await asyncio.wait_for(loop.sock_recv(each, 1_000), 10)
                    assert numbers_in(reply) == [number]
                assert served.network.census.total == 30

    run(main())


@on_every_loop
def test_large_frames_arrive_whole_in_both_directions(run: Run) -> None:
    body = os.urandom(5_000_000)

    def mirror(frame: memoryview, slot: RequestSlot) -> None:
        slot.reply([struct.pack(">i", len(frame)), bytes(frame)])

    async def main() -> None:
        async with serving(mirror) as served:
            client = await served.client()
            for _ in range(3):
                client.writer.write(struct.pack(">i", len(body)) + body)
                assert await client.reply() == struct.pack(">i", len(body)) + body

    run(main())


class Unread(FakeSlice):
    """A slice whose bytes the process may not look at."""

    def read(self) -> bytes:
        raise AssertionError("the bytes went through the process")


@pytest.mark.spec("LOG-97", "LOG-98")
@on_every_loop
def test_a_file_goes_to_the_socket_without_passing_through_the_process(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    content = os.urandom(300_000)
    path.write_bytes(content)

    def fetch(_: memoryview, slot: RequestSlot) -> None:
        slot.reply([struct.pack(">i", len(content)), Unread(path, 0, len(content))])

    async def main() -> None:
        async with serving(fetch) as served:
            client = await served.client()
            client.writer.write(request(1))
            assert (await client.reply())[4:] == content

    run(main())


@on_every_loop
def test_files_are_sent_between_the_bytes_around_them_also_to_a_slow_reader(
    run: Run, tmp_path: Path
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

    async def main() -> None:
        async with serving(fetch) as served:
            client = await served.client()
            client.writer.write(request(1) + request(2) + request(3))
            await until(lambda: any(live.unsent for live in served.network.live))
            for _ in range(3):
                assert (await client.reply())[4:] == body

    run(main())


@on_every_loop
def test_a_client_that_goes_away_in_the_middle_costs_nobody_anything(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(8_000_000))

    def fetch(frame: memoryview, slot: RequestSlot) -> None:
        if number_of(frame) == 1:
            slot.reply([struct.pack(">i", 8_000_000), FakeSlice(path, 0, 8_000_000)])
        else:
            echo(frame, slot)

    async def main() -> None:
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

    run(main())


@on_every_loop
def test_a_late_answer_never_reaches_a_connection_that_took_over_the_number(run: Run) -> None:
    parked = Parked()

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        parked(frame, slot) if number_of(frame) == 1 else echo(frame, slot)

    async def main() -> None:
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

    run(main())


@pytest.mark.spec("NET-17")
@on_every_loop
@pytest.mark.parametrize("bad", [b"GET / HTTP/1.0\r\n\r\n", b"\xff\xff\xff\xff", b"\0\0\0\0"])
def test_a_stranger_is_hung_up_on(run: Run, bad: bytes) -> None:
    async def main() -> None:
        async with serving(echo) as served:
            stranger, client = await served.client(), await served.client()
            stranger.writer.write(bad)
            assert await stranger.hung_up()
            client.writer.write(request(1))
            assert await client.numbers(1) == [1]

    run(main())


@pytest.mark.spec("NET-39")
@on_every_loop
def test_connections_over_the_limit_are_hung_up_on(run: Run) -> None:
    async def main() -> None:
        async with serving(echo, NetLimits(max_connections_per_ip=2)) as served:
            welcome = [await served.client(), await served.client()]
            await until(lambda: served.listener.connection_count == 2)
            assert await (await served.client()).hung_up()
            for client in welcome:
                client.writer.write(request(1))
                assert await client.numbers(1) == [1]

    run(main())


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
def test_stopping_lets_started_requests_finish_and_accepts_no_more(run: Run) -> None:
    parked = Parked()

    async def main() -> None:
        async with serving(parked) as served:
            client = await stopped_with(served, parked, 10_000)
            assert await client.numbers(1) == [1]
            assert await client.hung_up()
            with pytest.raises(OSError):
                await served.client()

    run(main())


@on_every_loop
def test_stopping_does_not_wait_longer_than_it_was_told_to(run: Run) -> None:
    parked = Parked()

    async def main() -> None:
        async with serving(parked) as served:
            client = await stopped_with(served, parked, 0)
            assert await client.hung_up()
            parked.answer(1)

    run(main())


@pytest.mark.spec("NET-02", "NET-34", "NET-35")
def test_every_listener_has_its_own_door_and_they_share_the_rest() -> None:
    async def main() -> None:
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
            assert served.network.census.total == 2
            assert other.connection_count == 1
            await served_too.hang_up()
            await other.stop(1_000)
            here.writer.write(request(2))
            assert await here.numbers(1) == [2]

    asyncio.run(main())


@pytest.mark.spec("NET-36")
@on_every_loop
def test_a_bound_listener_knows_its_port_and_lets_nobody_in_before_it_serves(run: Run) -> None:
    async def main() -> None:
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

    run(main())


def test_a_port_that_is_taken_is_an_error_at_start() -> None:
    async def main() -> None:
        async with serving(echo) as served:
            twin = Listener(Place(port=served.port), echo, served.network)
            with pytest.raises(OSError):
                await twin.start()
            await twin.stop(0)

    asyncio.run(main())


@pytest.mark.spec("NET-20")
def test_hundreds_of_idle_connections_keep_no_receive_memory() -> None:
    async def main() -> None:
        async with serving(echo) as served:
            clients = [await served.client() for _ in range(200)]
            for client in clients:
                client.writer.write(request(1) + request(2)[:5])
            for client in clients:
                assert await client.numbers(1) == [1]
            assert served.network.buffers.kept_bytes == 0

    asyncio.run(main())


@pytest.mark.spec("NET-36")
@on_every_loop
@pytest.mark.parametrize("passes", range(5))
def test_who_comes_in_the_moment_of_a_stop_is_not_forgotten(run: Run, passes: int) -> None:
    async def main() -> None:
        async with serving(echo) as served:
            with socket.create_connection(("127.0.0.1", served.port), timeout=10) as late:
                for _ in range(passes):
                    await asyncio.sleep(0)
                await served.listener.stop(1_000)
                with contextlib.suppress(ConnectionResetError):
                    assert late.recv(1) == b""

    run(main())
