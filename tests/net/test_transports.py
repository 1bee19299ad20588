"""Wires: real sockets and files, and transports that copy."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.net.connection_limits import ConnectionCounts
from ottla.net.limits import NetLimits
from ottla.net.transports import (
    CopyingTransport,
    SocketTransport,
    enlarge_send_buffer,
    transport_of,
    tune,
)
from tests.fakes.file_slice import FakeSlice
from tests.fakes.transport import MemoryTransport


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


def descriptors_of(connection: socket.socket) -> int:
    """How many name this connection: of all others some may be opened or collected meanwhile."""
    wanted = os.fstat(connection.fileno())
    count = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):  # closed since it was listed
            count += os.path.samestat(os.fstat(int(name)), wanted)
    return count


@pytest.mark.spec("LOG-98")
@pytest.mark.real_loop
async def test_bytes_and_a_file_reach_the_other_side(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")
    ours, theirs = pair

    wire = SocketTransport(ours.fileno(), asyncio.get_running_loop())
    assert wire.write(b"a") == 1
    assert wire.write_all([b"b", memoryview(b"c")], more=False) == 2
    assert wire.write_all([b"d"], more=True) == 1
    part = FakeSlice(path, 2, 5)
    assert wire.send_file(part, 0, 3) == 3
    assert wire.send_file(part, 3, 100) == 2
    wire.close()
    assert theirs.recv(100) == b"abcd23456"


@pytest.mark.real_loop
async def test_a_full_socket_takes_nothing_and_says_when_it_takes_more(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair

    wire = SocketTransport(ours.fileno(), asyncio.get_running_loop())
    while wire.write(bytes(65_536)):
        pass
    assert wire.write_all([b"x"], more=False) == 0
    assert wire.write_all([b"x"], more=True) == 0
    writable = asyncio.Event()
    wire.call_when_writable(writable.set)
    theirs.recv(1 << 20)
    await writable.wait()
    wire.call_when_writable(None)
    wire.close()


@pytest.mark.real_loop
async def test_a_second_descriptor_is_made_only_when_needed_and_closed_with_the_wire(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, _ = pair

    counts = ConnectionCounts()
    wire = SocketTransport(ours.fileno(), asyncio.get_running_loop(), counts)
    wire.write(b"small replies need none")
    assert (descriptors_of(ours), counts.duplicates) == (1, 0)
    wire.write_all([b"head"], more=True)
    assert (descriptors_of(ours), counts.duplicates) == (2, 1)
    wire.call_when_writable(lambda: None)
    wire.close()
    assert (descriptors_of(ours), counts.duplicates) == (1, 0)


@pytest.mark.real_loop
async def test_a_closed_wire_never_touches_its_old_descriptor_again(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair

    wire = SocketTransport(ours.fileno(), asyncio.get_running_loop())
    wire.close()
    with pytest.raises(OSError):
        wire.write(b"x")
    with pytest.raises(OSError):
        wire.write_all([b"x"], more=True)
    wire.close()
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


@pytest.mark.real_loop
async def test_a_file_that_ended_early_is_an_error_and_not_a_short_reply(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    path = tmp_path / "cut"
    path.write_bytes(b"0123")

    wire = SocketTransport(pair[0].fileno(), asyncio.get_running_loop())
    part = FakeSlice(path, 0, 10)
    assert wire.send_file(part, 0, 10) == 4
    with pytest.raises(OSError, match="shorter than the slice"):
        wire.send_file(part, 4, 10)
    with pytest.raises(OSError, match="shorter than the slice"):
        CopyingTransport(MemoryTransport()).send_file(part, 0, 10)
    wire.close()


@pytest.mark.spec("LOG-98")
@pytest.mark.real_loop
async def test_a_transport_without_a_socket_is_copied_through_at_its_own_pace(
    tmp_path: Path,
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")

    transport = MemoryTransport()
    wire = transport_of(transport, asyncio.get_running_loop())
    assert isinstance(wire, CopyingTransport)
    assert wire.write(memoryview(b"a")) == 1
    assert wire.write_all([b"b", b"c"], more=True) == 2
    assert wire.send_file(FakeSlice(path, 3, 4), 0, 1) == 4
    wire.on_paused()
    assert wire.write(b"x") == 0
    assert wire.send_file(FakeSlice(path, 3, 4), 0, 4) == 0
    told: list[str] = []
    wire.call_when_writable(lambda: told.append("more"))
    assert told == []
    wire.on_resumed()
    assert told == ["more"]
    assert bytes(transport.written) == b"abc3456"
    wire.close()
    wire.on_resumed()
    assert told == ["more"]


class Carried(MemoryTransport):
    """A transport over this socket."""

    def __init__(self, plain: socket.socket) -> None:
        super().__init__()
        self._plain = plain

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._plain if name == "socket" else None


@pytest.mark.spec("NET-05")
def test_a_socket_is_tuned_as_the_limits_say() -> None:
    with socket.socket() as plain:
        system = plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        limits = NetLimits(socket_send_buffer_bytes=-1, socket_receive_buffer_bytes=50_000)
        tune(Carried(plain), limits)
        assert plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (50_000, 100_000)
        assert plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == system
    tune(MemoryTransport(), NetLimits())


def test_a_send_buffer_is_enlarged_and_never_reduced() -> None:
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50_000)
        for size, least in ((150_000, 150_000), (20_000, 150_000)):
            enlarge_send_buffer(Carried(plain), size)
            assert plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= least
    enlarge_send_buffer(MemoryTransport(), 150_000)


class Sized(socket.socket):
    """A connection that says it is from there, and paced in this way."""

    there, pace, refuses = "127.0.0.1", b"bbr", False

    def getpeername(self) -> tuple[str, int]:
        if not self.there:
            raise OSError("gone")
        return self.there, 9

    def getsockopt(self, *asked: int) -> int | bytes:  # type: ignore[override]
        if asked[1:] == (socket.TCP_CONGESTION, 16):
            return self.pace.ljust(16, b"\0")
        return super().getsockopt(*asked)

    def setsockopt(self, *given: object) -> None:
        if given[1] == socket.TCP_CONGESTION:
            if self.refuses:
                raise PermissionError
            assert isinstance(given[2], bytes)
            self.pace = given[2]


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="nobody can choose it here")
@pytest.mark.parametrize(
    ("there", "pace", "chosen"),
    [
        ("127.0.0.1", b"bbr", b"reno"),
        ("::1", b"bbr2", b"reno"),
        ("::ffff:127.0.0.3", b"bbr", b"reno"),
        ("127.0.0.1", b"cubic", b"cubic"),
        ("192.0.2.127", b"bbr", b"bbr"),
        ("", b"bbr", b"bbr"),
    ],
)
def test_only_what_stays_within_the_machine_is_not_paced(
    there: str, pace: bytes, chosen: bytes
) -> None:
    with Sized() as plain:
        plain.there, plain.pace = there, pace
        tune(Carried(plain), NetLimits())
        assert plain.pace == chosen


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="nobody can choose it here")
def test_a_system_that_does_not_let_us_choose_is_left_alone() -> None:
    with Sized() as plain:
        plain.refuses = True
        tune(Carried(plain), NetLimits())
        assert plain.pace == b"bbr"
