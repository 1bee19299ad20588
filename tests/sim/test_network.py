"""The memory network keeps TCP's promises and not one more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tests.fakes.async_tests import played_by
from tests.sim.loop import Process, bury
from tests.sim.network import MemoryNetwork, NetLoop, SimTransport, Weather
from tests.sim.trace import Trace

CLIENTS = "test"
HOST = "host"
PORT = 9


class End(asyncio.Protocol):
    """Remembers all that its transport told it."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.pieces = 0
        self.ended: list[Exception | None] = []
        self.paused = 0
        self.resumed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.pieces += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.append(exc)

    def pause_writing(self) -> None:
        self.paused += 1

    def resume_writing(self) -> None:
        self.resumed += 1


class Wired:
    """A client and a server that are connected."""

    def __init__(self, loop: NetLoop) -> None:
        self.loop = loop
        self.network = loop.network
        self.process = Process("server", HOST)

    async def connect(self) -> tuple[End, End]:
        served: list[End] = []

        def factory() -> End:
            served.append(End())
            return served[-1]

        with self.process.running():
            server = self.network.listen(HOST, PORT, factory)
        await server.start_serving()
        _, near = await self.loop.create_connection(End, HOST, PORT)
        await asyncio.sleep(0)
        return near, served[-1]


def play(story: Callable[[Wired], Awaitable[None]], seed: int = 0) -> None:
    loop = NetLoop(Random(seed), Trace())
    loop.network = MemoryNetwork(loop, Random(seed))
    test, wired = Process(CLIENTS), Wired(loop)

    async def tell() -> None:
        await story(wired)

    with test.running():
        loop.run_until_complete(tell())
    assert not loop.unhandled
    loop.let_go([test, wired.process])
    bury()


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_in_order_however_they_are_cut_and_delayed(seed: int) -> None:
    async def story(wired: Wired) -> None:
        wired.network.weather = Weather(delay_s=0.1, stall=0.2, fragment=0.9)
        near, far = await wired.connect()
        sent = [bytes([number]) * (number * 7 + 1) for number in range(50)]
        for data in sent:
            near.transport.write(data)
        await asyncio.sleep(100)
        assert bytes(far.got) == b"".join(sent)
        assert far.pieces > len(sent)

    play(story, seed)


@played_by(play)
async def test_a_reader_that_pauses_gets_nothing_and_holds_the_writer_up(wired: Wired) -> None:
    near, far = await wired.connect()
    far.transport.pause_reading()
    near.transport.write(b"x" * 100_000)
    await asyncio.sleep(10)
    assert (len(far.got), near.paused, near.resumed) == (0, 1, 0)
    far.transport.resume_reading()
    await asyncio.sleep(10)
    assert (len(far.got), near.resumed) == (100_000, 1)


@played_by(play)
async def test_what_was_written_before_a_close_arrives_and_then_the_end(wired: Wired) -> None:
    near, far = await wired.connect()
    near.transport.write(b"last words")
    near.transport.close()
    await asyncio.sleep(1)
    assert far.got == b"last words"
    assert near.ended == far.ended == [None]
    assert not wired.network.lines


@played_by(play)
async def test_a_reset_ends_both_sides(wired: Wired) -> None:
    near, far = await wired.connect()
    wired.network.storm()
    await asyncio.sleep(1)
    assert isinstance(near.ended[0], ConnectionResetError)
    assert isinstance(far.ended[0], ConnectionResetError)


@played_by(play)
async def test_a_silent_line_loses_everything_and_tells_nobody(wired: Wired) -> None:
    near, far = await wired.connect()
    wired.network.weather = Weather(silence=1.0)
    near.transport.write(b"hello?")
    far.transport.write(b"hello?")
    await asyncio.sleep(1_000)
    assert not near.got and not far.got
    assert not near.ended and not far.ended


@played_by(play)
async def test_a_killed_process_ends_its_connections_and_is_told_nothing(wired: Wired) -> None:
    near, far = await wired.connect()
    wired.loop.kill(wired.process)
    wired.network.lose(wired.process, silently=False)
    await asyncio.sleep(1)
    assert near.ended == [None]
    assert far.ended == []
    with pytest.raises(ConnectionRefusedError):
        await wired.loop.create_connection(End, HOST, PORT)


@played_by(play)
async def test_after_a_power_cut_a_peer_hears_of_it_only_when_it_writes_and_the_machine_is_back(
    wired: Wired,
) -> None:
    near, _ = await wired.connect()
    wired.network.down.add(HOST)
    wired.loop.kill(wired.process)
    wired.network.lose(wired.process, silently=True)
    near.transport.write(b"anybody there?")
    await asyncio.sleep(100)
    assert not near.ended
    wired.network.down.clear()
    near.transport.write(b"anybody there?")
    await asyncio.sleep(1)
    assert isinstance(near.ended[0], ConnectionResetError)


@played_by(play)
async def test_a_cut_direction_holds_bytes_back_until_it_is_healed(wired: Wired) -> None:
    near, far = await wired.connect()
    wired.network.cut((CLIENTS, HOST))
    near.transport.write(b"one")
    far.transport.write(b"heard")
    await asyncio.sleep(100)
    assert (bytes(near.got), bytes(far.got)) == (b"heard", b"")
    with pytest.raises(TimeoutError):
        await wired.loop.create_connection(End, HOST, PORT)
    near.transport.close()
    wired.network.heal((CLIENTS, HOST))
    await asyncio.sleep(1)
    assert bytes(far.got) == b"one"
    assert far.ended == [None]


@played_by(play)
async def test_a_host_that_is_cut_off_does_not_hear_that_its_peer_died(wired: Wired) -> None:
    near, _ = await wired.connect()
    wired.network.cut((HOST, CLIENTS), (CLIENTS, HOST))
    wired.loop.kill(wired.process)
    wired.network.lose(wired.process, silently=False)
    near.transport.write(b"anybody there?")
    await asyncio.sleep(100)
    assert not near.ended
    wired.network.heal()
    await asyncio.sleep(1)
    assert near.ended
