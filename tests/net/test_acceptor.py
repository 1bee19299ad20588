"""New connections: a few in each pass of the loop, whatever the number that waits."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from ottla.net.acceptor import ACCEPTS_PER_PASS
from ottla.net.limits import NetLimits
from tests.fakes.async_tests import LoopFactory
from tests.fakes.descriptors import no_descriptors
from tests.net.frames import numbers_in, request
from tests.net.loopback import serving, until
from tests.net.rig import a_pass, echo

LOOPS: list[LoopFactory] = [asyncio.new_event_loop]
with contextlib.suppress(ImportError):  # the extra `speed` may not be installed
    import uvloop

    LOOPS.append(uvloop.new_event_loop)

on_every_loop = pytest.mark.parametrize("loop_factory", LOOPS)
WAITING = 200


@pytest.mark.spec("NET-08")
@on_every_loop
async def test_however_many_connections_wait_a_pass_of_the_loop_accepts_a_few(
    loop_factory: LoopFactory,
) -> None:
    async with serving(echo, NetLimits(socket_listen_backlog_size=WAITING)) as served:
        counts, growth = served.network.connection_counts, [0]
        with contextlib.ExitStack() as stack:
            for _ in range(WAITING):
                stack.enter_context(socket.create_connection(("127.0.0.1", served.port), 10))
            assert counts.total == 0, "the loop has not run"
            while counts.total < WAITING:
                before = counts.total
                await a_pass()
                growth.append(counts.total - before)
            assert max(growth) <= ACCEPTS_PER_PASS
        await until(lambda: counts.total == 0)


@pytest.mark.own_process
@on_every_loop
async def test_connections_that_find_no_descriptor_are_accepted_when_there_are_some(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(echo) as served:
        with socket.socket() as client:
            with no_descriptors():
                client.connect(("127.0.0.1", served.port))
                client.sendall(request(7))
                client.setblocking(False)
                async with asyncio.timeout(10):
                    await until(lambda: "cannot accept connections" in caplog.text)
            async with asyncio.timeout(10):
                reply = await asyncio.get_running_loop().sock_recv(client, 1_000)
            assert numbers_in(reply) == [7]
        assert caplog.text.count("cannot accept connections") == 1


@on_every_loop
async def test_a_listener_that_stops_leaves_no_socket_that_it_has_accepted(
    loop_factory: LoopFactory,
) -> None:
    async with serving(echo) as served:
        clients = [socket.create_connection(("127.0.0.1", served.port), 10) for _ in range(20)]
        await a_pass()  # some are accepted and no connections yet
    for client in clients:
        with client, contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
