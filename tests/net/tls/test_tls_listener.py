"""TLS on accepted connections: real sockets, other people's TLS on the client's side."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from ottla.config.broker import BrokerConfig
from ottla.net.channel import Channel, ChannelContext
from ottla.net.limits import NetLimits
from ottla.net.listener import RequestSlot
from ottla.net.tls.connection import TlsConnection, has_whole_record
from ottla.security.tls.contexts import ServerTls
from tests.fakes.async_tests import LoopFactory
from tests.fakes.certificates import certificates, client_context, pem, server_tls, trust
from tests.fakes.file_slice import FakeSlice
from tests.fakes.transport import MemoryTransport
from tests.net.frames import number_of, reply, request
from tests.net.loopback import serving, until
from tests.net.rig import Rig, echo

T = TypeVar("T")
LOOPS: list[LoopFactory] = [asyncio.new_event_loop]
with contextlib.suppress(ImportError):
    import uvloop

    LOOPS.append(uvloop.new_event_loop)

on_every_loop = pytest.mark.parametrize("loop_factory", LOOPS)


@pytest.mark.spec("SEC-01")
@on_every_loop
async def test_requests_over_tls_are_answered_in_order(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    tls = server_tls(pem(certificates().broker))
    async with serving(echo, tls=tls, client_tls=client_context(tmp_path)) as served:
        clients = [await served.client() for _ in range(5)]
        for client in clients:
            client.writer.write(b"".join(map(request, range(300))))
        for client in clients:
            assert await client.numbers(300) == list(range(300))


@on_every_loop
async def test_large_requests_and_replies_from_files_arrive_whole(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    content = bytes(range(256)) * (12 << 12)
    path = tmp_path / "segment"
    path.write_bytes(content)

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        head = reply(number_of(frame), bytes(len(content)))[:8]
        slot.reply([head, FakeSlice(path, 0, len(content))])

    tls = server_tls(pem(certificates().broker))
    async with serving(answer, tls=tls, client_tls=client_context(tmp_path)) as served:
        client = await served.client()
        client.writer.write(request(1, size=5 << 20) + request(2))
        for number in (1, 2):
            whole = await client.reply()
            assert whole == reply(number, content)


@on_every_loop
async def test_files_sent_to_several_clients_at_once_are_not_mixed_up(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    size = 3 << 20
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(bytes([number]) * size)

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        number = number_of(frame)
        slot.reply([reply(number, bytes(size))[:8], FakeSlice(tmp_path / f"{number}", 0, size)])

    tls = server_tls(pem(certificates().broker))
    async with serving(answer, tls=tls, client_tls=client_context(tmp_path)) as served:
        clients = [await served.client() for _ in range(4)]
        for number, client in enumerate(clients):
            client.writer.write(request(number) + request(number))
        for _ in range(2):
            replies = await asyncio.gather(*(client.reply() for client in clients))
            assert replies == [reply(number, bytes([number]) * size) for number in range(4)]


@on_every_loop
async def test_a_peer_that_does_not_read_costs_one_slice_of_ciphertext(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(64 << 20))

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        slot.reply([reply(1, bytes(64 << 20))[:8], FakeSlice(path, 0, 64 << 20)])

    tls = server_tls(pem(certificates().broker))
    async with serving(answer, tls=tls, client_tls=client_context(tmp_path)) as served:
        client = await served.client()
        client.writer.write(request(1))
        await until(lambda: served.network.replies.total > 0)
        for _ in range(50):
            await asyncio.sleep(0)
        assert served.network.replies.total <= (1 << 20) + (64 << 10)
        assert len(await client.reply()) == 8 + (64 << 20)
        await until(lambda: served.network.replies.total == 0)


@on_every_loop
async def test_a_plaintext_request_on_a_tls_port_is_closed_with_one_line_that_says_so(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(echo, tls=server_tls(pem(certificates().broker))) as served:
        client = await served.client()
        client.writer.write(request(1))
        assert await client.hung_up()
        lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(lines) == 1
        assert "plaintext request: this listener uses TLS" in lines[0].getMessage()


@pytest.mark.real_loop
async def test_a_tls_hello_on_a_plaintext_port_is_closed_with_one_line_that_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(echo, client_tls=client_context(tmp_path)) as served:
        with pytest.raises((ssl.SSLError, OSError)):
            await served.client()
        lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(lines) == 1
        assert "TLS handshake: this listener uses PLAINTEXT" in lines[0].getMessage()


async def test_a_handshake_that_is_not_finished_in_ten_seconds_is_ended() -> None:
    rig = Rig()
    tls = server_tls(pem(certificates().broker))
    transport = tls_line(rig, tls)
    assert len(rig.network.live) == 1, "the limits count it before the handshake"
    await asyncio.sleep(9.9)
    assert not transport.is_closing()
    await asyncio.sleep(0.2)
    assert transport.is_closing()


def tls_line(rig: Rig, tls: ServerTls) -> MemoryTransport:
    transport = MemoryTransport()
    channel = Channel(rig.network, ChannelContext("SSL", "SSL", echo, False, tls))
    connection = TlsConnection(channel, tls.session, is_server=True)
    connection.connection_made(transport)
    return transport


class CountedSessions:
    """Counts the TLS sessions that are made, and the steps of handshakes."""

    def __init__(self, tls: ServerTls) -> None:
        self._tls = tls
        self.made = 0
        self.steps = 0

    def session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        self.made += 1
        return self._tls.session(incoming, outgoing)

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        self.steps += 1
        done = asyncio.get_running_loop().create_future()
        done.set_result(work())
        return done


def deliver(connection: TlsConnection, data: bytes) -> None:
    room = connection.get_buffer(-1)
    room[: len(data)] = data
    connection.buffer_updated(len(data))


def first_flight(tmp_path: Path) -> bytes:
    """What OpenSSL's client sends first."""
    outgoing = ssl.MemoryBIO()
    client = client_context(tmp_path).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="here")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.spec("SEC-01")
async def test_nothing_is_made_or_computed_for_a_client_before_its_first_record_is_whole(
    tmp_path: Path,
) -> None:
    rig, tls = Rig(), server_tls(pem(certificates().broker))
    counted, transport = CountedSessions(tls), MemoryTransport()
    channel = Channel(rig.network, ChannelContext("SSL", "SSL", echo, False, tls))
    connection = TlsConnection(channel, counted.session, run=counted.run, is_server=True)
    connection.connection_made(transport)
    hello = first_flight(tmp_path)
    for at in range(len(hello) - 1):
        deliver(connection, hello[at : at + 1])
    assert (counted.made, counted.steps) == (0, 0)
    deliver(connection, hello[-1:])
    assert (counted.made, counted.steps) == (1, 1)
    await asyncio.sleep(0)
    assert transport.written, "the broker's own hello"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x16", False),
        (b"\x16\x03\x01\x00", False),
        (b"\x16\x03\x01\x00\x02", False),
        (b"\x16\x03\x01\x00\x02a", False),
        (b"\x16\x03\x01\x00\x02ab", True),
        (b"\x16\x03\x01\x00\x02abc", True),
        (b"\x16\x03\x01\x00\x00", True),
        (b"\x16\x03\x01\x48\x00", False),
        (b"\x16\x03\x01\x48\x01", True),  # no record is so long: it is refused at once
    ],
)
def test_a_first_record_is_whole_when_its_claimed_length_is_here(
    data: bytes, expected: bool
) -> None:
    assert has_whole_record(data) is expected


@pytest.mark.real_loop
async def test_connections_over_the_limit_are_refused_before_their_handshake(
    tmp_path: Path,
) -> None:
    tls = server_tls(pem(certificates().broker))
    limits = NetLimits(max_connections_per_ip=1)
    async with serving(echo, limits, tls=tls, client_tls=client_context(tmp_path)) as served:
        first = await served.client()
        with pytest.raises((ssl.SSLError, OSError)):
            await served.client()
        first.writer.write(request(1))
        assert await first.numbers(1) == [1]


@pytest.mark.real_loop
@pytest.mark.parametrize("auth", ["none", "requested", "required"])
async def test_a_client_certificate_names_the_principal(
    auth: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    principals: list[str] = []

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        principals.append(slot.peer.principal)
        echo(frame, slot)

    made = certificates()
    tls = server_tls({**pem(made.broker), **trust(made.authority), "ssl.client.auth": auth})
    for context in (client_context(tmp_path), alices_context(tmp_path)):
        async with serving(answer, tls=tls, client_tls=context) as served:
            with contextlib.suppress(ssl.SSLError, OSError, asyncio.IncompleteReadError):
                client = await served.client()
                client.writer.write(request(1))
                await client.numbers(1)
    by_certificate = "User:CN=alice" if auth != "none" else "User:ANONYMOUS"
    expected = [by_certificate] if auth == "required" else ["User:ANONYMOUS", by_certificate]
    assert principals == expected
    if auth == "required":
        assert "the client sent no certificate" in caplog.text


@pytest.mark.spec("SEC-01")
@pytest.mark.real_loop
async def test_a_client_of_an_older_version_than_the_enabled_one_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = server_tls({**pem(certificates().broker), "ssl.enabled.protocols": "TLSv1.3,TLSv1.1"})
    older, newer = client_context(tmp_path), client_context(tmp_path)
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(echo, tls=tls, client_tls=older) as served:
        with pytest.raises((ssl.SSLError, OSError)):
            await served.client()
        await until(lambda: bool(caplog.records))
    assert "no TLS version in common; see ssl.enabled.protocols" in caplog.text
    async with serving(echo, tls=tls, client_tls=newer) as served:
        client = await served.client()
        assert client.tls.version() == "TLSv1.3"
        client.writer.write(request(1))
        assert await client.numbers(1) == [1]


@pytest.mark.spec("SEC-01")
@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("suite", "used"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    ],
)
async def test_the_only_cipher_suite_that_is_enabled_is_the_one_used(
    suite: str, used: str, tmp_path: Path
) -> None:
    tls = server_tls({**pem(certificates().broker), "ssl.cipher.suites": suite})
    async with serving(echo, tls=tls, client_tls=client_context(tmp_path)) as served:
        client = await served.client()
        cipher = client.tls.cipher()
        assert cipher is not None
        assert cipher[0] == used
        client.writer.write(request(1))
        assert await client.numbers(1) == [1]
    another = client_context(tmp_path)
    another.maximum_version = ssl.TLSVersion.TLSv1_2
    another.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    async with serving(echo, tls=tls, client_tls=another) as served:
        with pytest.raises((ssl.SSLError, OSError)):
            await served.client()


@pytest.mark.spec("SEC-03")
@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("RULE:^CN=(.*)$/$1/U,DEFAULT", "User:ALICE"),
        ("RULE:^OU=(.*)$/$1/,RULE:^CN=(a.*)$/role-$1/", "User:role-alice"),
        ("RULE:^OU=(.*)$/$1/", None),
    ],
)
async def test_a_mapping_rule_makes_the_principal_of_a_connection(
    rules: str, principal: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    principals: list[str] = []

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        principals.append(slot.peer.principal)
        echo(frame, slot)

    made = certificates()
    settings = {**pem(made.broker), **trust(made.authority), "ssl.client.auth": "required"}
    tls = server_tls({**settings, "ssl.principal.mapping.rules": rules})
    async with serving(answer, tls=tls, client_tls=alices_context(tmp_path)) as served:
        with contextlib.suppress(ssl.SSLError, OSError, asyncio.IncompleteReadError):
            client = await served.client()
            client.writer.write(request(1))
            await client.numbers(1)
    assert principals == ([] if principal is None else [principal])
    if principal is None:
        assert "no rule of ssl.principal.mapping.rules matches CN=alice" in caplog.text


def alices_context(tmp_path: Path) -> ssl.SSLContext:
    """A client with a certificate."""
    context, key = client_context(tmp_path), tmp_path / "alice.pem"
    alice = certificates().alice
    key.write_bytes(alice.key_pem() + alice.certificate_pem())
    context.load_cert_chain(key)
    return context


@pytest.mark.spec("SEC-04")
@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"ssl.client.auth": "required"}, "unknown authority"),
        ({"ssl.client.auth": "requested"}, "unknown authority"),
        ({"ssl.principal.mapping.rules": "RULE:^OU=(.*)$/$1/"}, "no rule of"),
    ],
)
async def test_a_client_certificate_that_is_refused_is_a_line_in_the_audit_log(
    settings: dict[str, str], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ottla.security.audit")
    made = certificates()
    trusted = made.authority if reason == "no rule of" else made.other_authority
    auth = {"ssl.client.auth": "required", **pem(made.broker), **trust(trusted)}
    async with serving(
        echo, tls=server_tls(auth | settings), client_tls=alices_context(tmp_path)
    ) as served:
        with contextlib.suppress(ssl.SSLError, OSError):
            await served.client()
        await until(lambda: any(one.name == "ottla.security.audit" for one in caplog.records))
    [line] = [one.getMessage() for one in caplog.records if one.name == "ottla.security.audit"]
    assert line.startswith("TLS client refused: host=127.0.0.1 listener=SSL reason=")
    assert reason in line


@pytest.mark.spec("SEC-04")
@pytest.mark.real_loop
async def test_a_missing_client_certificate_is_a_line_in_the_audit_log_and_bytes_are_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ottla.security.audit")
    made = certificates()
    tls = server_tls({**pem(made.broker), **trust(made.authority), "ssl.client.auth": "required"})
    async with serving(echo, tls=tls) as served:
        client = await served.client()
        client.writer.write(b"\x16\x03\x01\x00\x04garbage")
        await client.reader.read()  # an alert, and the end
    assert not [one for one in caplog.records if one.name == "ottla.security.audit"]
    async with serving(echo, tls=tls, client_tls=client_context(tmp_path)) as served:
        with contextlib.suppress(ssl.SSLError, OSError):
            await served.client()
        await until(lambda: any(one.name == "ottla.security.audit" for one in caplog.records))
    [line] = [one.getMessage() for one in caplog.records if one.name == "ottla.security.audit"]
    assert "reason=TLS handshake failed: the client sent no certificate" in line


@pytest.mark.real_loop
async def test_a_certificate_that_is_replaced_serves_new_connections_and_keeps_old_ones(
    tmp_path: Path,
) -> None:
    made = certificates()
    store = tmp_path / "broker.pem"
    store.write_bytes(made.broker.key_pem() + made.broker.certificate_pem())
    texts = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    tls = server_tls(texts)
    config = BrokerConfig.parse(texts)
    async with serving(echo, tls=tls, client_tls=client_context(tmp_path)) as served:
        old = await served.client()
        assert not tls.is_stale(config)
        store.write_bytes(made.stranger.key_pem() + made.stranger.certificate_pem())
        assert tls.is_stale(config)
        tls.refresh(config)
        assert not tls.is_stale(config)
        with pytest.raises(ssl.SSLCertVerificationError):
            await served.client()
        old.writer.write(request(1))
        assert await old.numbers(1) == [1]
