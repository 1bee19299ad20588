"""TLS handshakes of hostile clients: nobody is let in, nothing fails inside, nothing stays behind.

The broker requires a client certificate of its authority, and no client here has one. Clients are
OpenSSL's own: their flights are damaged on the way, cut, split, repeated, reordered, or mixed with
those of another handshake. So even one that arrives undamaged must be refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import ssl
import time
from pathlib import Path
from typing import Final

import pytest

from ottla.net.channel import Channel, ChannelContext
from ottla.net.listener import RequestSlot
from ottla.net.tls.connection import HANDSHAKE_MAX_MS, TlsConnection
from ottla.security.tls.authority import Issued
from ottla.security.tls.contexts import ServerTls
from tests.fakes.certificates import certificates, client_context, pem, server_tls, trust
from tests.fakes.transport import MemoryTransport
from tests.fuzz.growth import no_growth
from tests.fuzz.mutations import MUTATIONS, reversion
from tests.net.loopback import serving, until
from tests.net.rig import Rig

SEED: Final = int(os.environ.get("OTTLA_FUZZ_SEED", "1"))
FLIGHTS: Final = 4
GROWTH_MAX_BYTES: Final = 300_000
SLOWEST_S: Final = 2.0
"""Of CPU time, for one handshake; it takes about a millisecond."""
DAMAGES: Final = tuple(each for each in MUTATIONS if each is not reversion)
RECORD_HEAD: Final = 5
PORT_TURNS: Final = 50


def hostile_to() -> ServerTls:
    """TLS of a listener whose clients need a certificate of its authority."""
    made = certificates()
    texts = {**pem(made.broker), **trust(made.authority), "ssl.client.auth": "required"}
    return server_tls(texts)


def client_contexts(tmp_path: Path) -> list[ssl.SSLContext]:
    """Clients without a certificate, and with one of another authority, in both versions."""
    contexts = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for shown in (None, certificates().stranger):
            context = client_context(tmp_path)
            context.minimum_version = context.maximum_version = version
            if shown is not None:
                _show(context, shown, tmp_path)
            contexts.append(context)
    return contexts


def _show(context: ssl.SSLContext, shown: Issued, tmp_path: Path) -> None:
    path = tmp_path / "shown.pem"
    path.write_bytes(shown.key_pem() + shown.certificate_pem())
    context.load_cert_chain(path)


class HostileClient:
    """OpenSSL's side of a handshake; what it sends is damaged by dice."""

    def __init__(self, context: ssl.SSLContext, dice: random.Random) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self._dice = dice
        self._before = b""

    def flight(self, received: bytes) -> bytes:
        """What it sends next, damaged; nothing if it has given up."""
        self._incoming.write(received)
        with contextlib.suppress(ssl.SSLError, ValueError):
            self._tls.do_handshake()
            self._tls.write(b"\0\0\0\x0e\0\x12\0\0\0\0\0\7\xff\xff" + bytes(4))  # a request
        genuine = self._outgoing.read()
        flight, self._before = self._damaged(genuine, self._before), genuine
        return flight

    def _damaged(self, genuine: bytes, before: bytes) -> bytes:
        dice, records = self._dice, records_of(genuine)
        match dice.randrange(8):
            case 0:
                return genuine
            case 1:
                dice.shuffle(records)
                return b"".join(records)
            case 2:
                return genuine + before  # the last flight once more
            case 3:
                return b"".join(_resized(dice, record) for record in records)
            case 4 if records:
                return genuine + dice.choice(records) * dice.choice((1, 3, 500))
            case 5:
                return bytes([dice.choice((20, 21, 22, 23, 24)), 3, 3]) + dice.randbytes(40)
            case _:
                body = bytearray(genuine)
                for _ in range(dice.choice((1, 1, 2, 4))):
                    dice.choice(DAMAGES)(dice, body)
                return bytes(body)


def records_of(flight: bytes) -> list[bytes]:
    """The TLS records of whole bytes from a genuine client."""
    records, at = [], 0
    while at < len(flight):
        end = at + RECORD_HEAD + int.from_bytes(flight[at + 3 : at + RECORD_HEAD], "big")
        records.append(flight[at:end])
        at = end
    return records


def _resized(dice: random.Random, record: bytes) -> bytes:
    """A record that claims another length, or one that is split in two."""
    body = record[RECORD_HEAD:]
    if dice.random() < 0.5 or len(body) < 2:
        claimed = dice.choice((0, 1, len(body) - 1, len(body) + 1, 0x4000, 0x4101, 0xFFFF))
        return record[:3] + max(0, claimed).to_bytes(2, "big") + body
    at = dice.randrange(1, len(body))
    head = record[:3]
    return b"".join(head + len(part).to_bytes(2, "big") + part for part in (body[:at], body[at:]))


class Attack:
    """Handshakes against a channel in memory, one after the other."""

    def __init__(self, tmp_path: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rig = Rig()
        self.answered = 0
        self._tls = hostile_to()
        self._contexts = client_contexts(tmp_path)

    async def one(self) -> None:
        """One connection: its flights, in pieces; then the client goes or falls silent."""
        dice, transport = self.dice, MemoryTransport()
        channel = Channel(self.rig.network, self._context())
        connection = TlsConnection(channel, self._tls.session, is_server=True)
        connection.connection_made(transport)
        client, seen = HostileClient(dice.choice(self._contexts), dice), 0
        began = time.process_time()
        for _ in range(FLIGHTS):
            received, seen = bytes(transport.written[seen:]), len(transport.written)
            await self._deliver(connection, transport, client.flight(received))
        if dice.random() < 0.5:
            connection.eof_received()
        elif not transport.is_closing() and dice.random() < 0.01:
            await asyncio.sleep(HANDSHAKE_MAX_MS / 1e3 + 0.1)
            assert transport.is_closing(), "a handshake that stops is ended"
        assert time.process_time() - began < SLOWEST_S
        connection.connection_lost(None)
        await asyncio.sleep(0)
        assert channel.peer.principal == "User:ANONYMOUS"

    async def _deliver(
        self, connection: TlsConnection, transport: MemoryTransport, flight: bytes
    ) -> None:
        at = 0
        while at < len(flight) and not transport.is_closing():
            if transport.paused:
                await asyncio.sleep(0)
                continue
            room = connection.get_buffer(-1)
            count = min(len(flight) - at, len(room), self.dice.choice((1, 7, 300, 1 << 16)))
            room[:count] = flight[at : at + count]
            connection.buffer_updated(count)
            at += count
        await asyncio.sleep(0)

    def _context(self) -> ChannelContext:
        return ChannelContext("SSL", "SSL", self._answer, False, self._tls)

    def _answer(self, frame: memoryview, slot: RequestSlot) -> None:
        self.answered += 1
        slot.close("nobody may come this far")


@pytest.mark.spec("SEC-01")
@pytest.mark.virtual_limit(10**9)
@pytest.mark.parametrize(
    "count", [600, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(3_600)])]
)
async def test_no_damaged_handshake_lets_anybody_in_fails_inside_or_leaves_anything(
    count: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    caplog.set_level(logging.ERROR)  # what is kept of others would count as growth
    attack = Attack(tmp_path, SEED)
    for _ in range(count // 3):
        await attack.one()
    with no_growth(GROWTH_MAX_BYTES):
        for _ in range(count - count // 3):
            await attack.one()
    assert failures == []
    assert attack.answered == 0
    assert not attack.rig.network.live


@pytest.mark.spec("SEC-01")
@pytest.mark.real_loop
@pytest.mark.parametrize(
    "count", [150, pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(3_600)])]
)
async def test_damaged_handshakes_over_sockets_leave_no_socket_thread_or_task(
    count: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    answered: list[int] = []

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        answered.append(len(frame))
        slot.close("nobody may come this far")

    dice, contexts = random.Random(SEED), client_contexts(tmp_path)
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    async with serving(answer, tls=hostile_to()) as served:

        async def attack(times: int) -> None:
            for _ in range(times):
                await _attack(served.port, HostileClient(dice.choice(contexts), dice), dice)
            async with asyncio.timeout(HANDSHAKE_MAX_MS / 1e3 + 5):
                await until(lambda: served.listener.connection_count == 0)

        await attack(count // 3)
        with no_growth(GROWTH_MAX_BYTES):
            await attack(count - count // 3)
    assert answered == []
    assert failures == []


async def _attack(port: int, client: HostileClient, dice: random.Random) -> None:
    """One client: its flights, what comes back in between, and an end of its choice."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        await loop.sock_connect(connection, ("127.0.0.1", port))
        received = b""
        with contextlib.suppress(OSError):
            for _ in range(FLIGHTS):
                await loop.sock_sendall(connection, client.flight(received))
                received = await _receive(connection)
            if dice.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


async def _receive(connection: socket.socket) -> bytes:
    """What the broker answers within a few passes of the loop; nothing, if it waits for more."""
    for _ in range(PORT_TURNS):
        await asyncio.sleep(0)
        with contextlib.suppress(BlockingIOError):
            return connection.recv(1 << 16)
    return b""
