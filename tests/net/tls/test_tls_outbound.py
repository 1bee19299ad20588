"""TLS on our own connections, and what their users are told when it fails."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.model.clock import SystemClock
from ottla.model.errors import AuthenticationFailed
from ottla.net.listener import RequestSlot
from ottla.net.outbound_connection import OutboundConnection
from ottla.security.tls.authority import Issued
from ottla.security.tls.contexts import ClientTls
from tests.fakes.certificates import certificates, client_tls, pem, server_tls, trust
from tests.net.frames import reply, request
from tests.net.loopback import Served, serving, until
from tests.net.rig import echo


def link_to(served: Served, tls: ClientTls, host: str = "127.0.0.1") -> OutboundConnection:
    return OutboundConnection(host, served.port, SystemClock(), Random(1), tls=tls)


@pytest.mark.real_loop
async def test_calls_over_tls_get_their_replies_whatever_their_size() -> None:
    def answer(frame: memoryview, slot: RequestSlot) -> None:
        slot.reply([reply(int.from_bytes(frame[4:8], "big"), bytes(frame[8:]))])

    made = certificates()
    async with serving(answer, tls=server_tls(pem(made.broker))) as served:
        link = link_to(served, client_tls(trust(made.authority)))
        sizes = [8, 100, 70_000, 3 << 20, 9]
        calls = [link.call(request(n, size=size)) for n, size in enumerate(sizes)]
        replies = await asyncio.gather(*calls)
        assert [len(each) for each in replies] == [size - 4 for size in sizes]
        link.close()
        await until(lambda: served.listener.connection_count == 0)


MADE = certificates()


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("shown", "trusted", "text"),
    [
        (MADE.stranger, MADE.authority, "unknown authority"),
        (MADE.expired, MADE.authority, "certificate has expired"),
        (MADE.elsewhere, MADE.authority, "host name mismatch"),
    ],
    ids=["unknown", "expired", "elsewhere"],
)
async def test_an_error_names_what_is_wrong_with_a_brokers_certificate(
    shown: Issued, trusted: Issued, text: str
) -> None:
    async with serving(echo, tls=server_tls(pem(shown))) as served:
        link = link_to(served, client_tls(trust(trusted)))
        with pytest.raises(AuthenticationFailed, match=text):
            await link.call(request(1))
        link.close()


@pytest.mark.real_loop
async def test_host_names_are_not_compared_when_the_setting_says_so() -> None:
    settings = {**trust(MADE.authority), "ssl.endpoint.identification.algorithm": ""}
    async with serving(echo, tls=server_tls(pem(MADE.elsewhere))) as served:
        link = link_to(served, client_tls(settings))
        assert await link.call(request(1)) == reply(1)[4:]
        link.close()
        await until(lambda: served.listener.connection_count == 0)


@pytest.mark.real_loop
async def test_a_missing_client_certificate_is_named() -> None:
    texts = {**pem(MADE.broker), **trust(MADE.authority), "ssl.client.auth": "required"}
    async with serving(echo, tls=server_tls(texts)) as served:
        link = link_to(served, client_tls(trust(MADE.authority)))
        with pytest.raises(AuthenticationFailed, match="requires a client certificate"):
            await link.call(request(1))
        link.close()


@pytest.mark.real_loop
async def test_a_plaintext_port_is_named_as_such() -> None:
    async with serving(echo) as served:
        link = link_to(served, client_tls(trust(MADE.authority)))
        with pytest.raises((AuthenticationFailed, OSError)):
            await link.call(request(1))
        link.close()
