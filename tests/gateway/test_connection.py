"""Connections over real sockets, with an answer that needs no broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ottla.gateway.connection import Answer
from ottla.gateway.errors import HttpError
from ottla.gateway.http_messages import Request, Response, error_reply
from ottla.gateway.limits import Limits
from ottla.gateway.server import HttpServer

LIMITS = Limits(
    max_header_bytes=1_000,
    max_body_bytes=100,
    max_pending_bytes=150,
    max_connections=2,
    receive_timeout_ms=300,
    send_timeout_ms=300,
    stop_timeout_ms=500,
)
HEAD = b"HTTP/1.1\r\nHost: localhost\r\n"


async def echo(request: Request) -> Response:
    """The request's method, path and body."""
    text = f"{request.method} {request.path} {request.body.decode()}".strip()
    return Response(200, json.dumps(text).encode(), "application/json")


class Peer:
    """The client's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))

    async def reply(self) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(head[0].split()[1]), headers, body

    async def is_closed(self) -> bool:
        return await self.reader.read(1) == b""


class Peers:
    """A server, and connections to it."""

    def __init__(self, server: HttpServer, port: int) -> None:
        self.server = server
        self._port = port
        self._opened: list[asyncio.StreamWriter] = []

    async def connect(self) -> Peer:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._opened.append(writer)
        return Peer(reader, writer)

    def close(self) -> None:
        for writer in self._opened:
            writer.close()


@asynccontextmanager
async def serving(answer: Answer = echo, limits: Limits = LIMITS) -> AsyncIterator[Peers]:
    server = HttpServer(answer, limits)
    peers = Peers(server, await server.start("127.0.0.1", 0))
    try:
        yield peers
    finally:
        peers.close()
        server.stop_listening()
        await server.wait_closed()


@pytest.mark.real_loop
async def test_one_connection_carries_many_requests_even_at_once() -> None:
    async with serving() as peers:
        peer = await peers.connect()
        peer.send(b"GET /a ", HEAD, b"\r\nPOST /b ", HEAD, b"Content-Length: 1\r\n\r\nx")
        assert (await peer.reply())[2] == b'"GET /a"'
        assert (await peer.reply())[2] == b'"POST /b x"'
        peer.send(b"HEAD /c ", HEAD, b"\r\n")
        head = (await peer.reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split()[1])
        assert status == 200
        peer.send(b"GET /d ", HEAD, b"Connection: close\r\n\r\n")
        status, headers, body = await peer.reply()
        assert (status, headers["connection"], body) == (200, "close", b'"GET /d"')
        assert await peer.is_closed()


@pytest.mark.real_loop
async def test_a_body_may_come_in_chunks_and_after_a_permission() -> None:
    async with serving() as peers:
        peer = await peers.connect()
        peer.send(
            b"POST / ", HEAD, b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        )
        assert (await peer.reply())[2] == b'"POST / abc"'
        peer.send(b"POST / ", HEAD, b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert (await peer.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        peer.send(b"de")
        assert (await peer.reply())[2] == b'"POST / de"'


@pytest.mark.real_loop
@pytest.mark.parametrize(
    "sent",
    [
        b"GET /topics ",
        b"POST /topics ",
        b"OPTIONS /topics ",
        b"GET /refused ",
        b"GET /nowhere HTTP/1.1\r\nno header\r\n",
    ],
)
async def test_no_reply_is_kept_by_a_cache_read_as_another_type_or_open_to_other_sites(
    sent: bytes,
) -> None:
    async def answer(request: Request) -> Response:
        if request.path == "/refused":
            return error_reply(HttpError(404, "no"))
        return await echo(request)

    async with serving(answer) as peers:
        peer = await peers.connect()
        asking = b"Origin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n\r\n"
        peer.send(sent, HEAD, asking)
        _, headers, _ = await peer.reply()
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-type"] == "application/json"
    assert not [name for name in headers if name.startswith("access-control-")]
    assert not {"set-cookie", "etag", "last-modified", "expires"} & headers.keys()


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (b"Content-Length: 101\r\n\r\n", 413, "at most 100 bytes"),
        (b"Transfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101 + b"\r\n", 413, "at most 100"),
        (b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415, "Content-Encoding"),
        (b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400, "HTTP"),
        (b"Content-Length: -1\r\n\r\n", 400, "HTTP"),
        (b"Content-Length: " + b"9" * 800 + b"\r\n\r\n", 400, "HTTP"),
        (b"X: " + b"x" * 2_000 + b"\r\n\r\n", 431, "headers: expected at most 1000 bytes"),
        (b"no header\r\n\r\n", 400, "HTTP"),
        (b"Content-Length: 5\r\n\r\nx", 408, "within 300 ms"),
        (b"", 408, "within 300 ms"),
    ],
)
async def test_a_request_beyond_a_limit_is_refused_in_json(
    sent: bytes, status: int, words: str
) -> None:
    async with serving() as peers:
        peer = await peers.connect()
        peer.send(b"POST / ", HEAD, sent)
        got, headers, body = await peer.reply()
        assert (got, headers["content-type"]) == (status, "application/json")
        assert json.loads(body)["error_code"] == status
        assert words in json.loads(body)["message"]
        assert await peer.is_closed()


@pytest.mark.real_loop
async def test_a_silent_connection_is_closed_without_a_reply() -> None:
    async with serving() as peers:
        assert await (await peers.connect()).is_closed()


@pytest.mark.real_loop
async def test_connections_and_pending_bytes_are_bounded() -> None:
    release = asyncio.Event()

    async def wait(request: Request) -> Response:
        await release.wait()
        return await echo(request)

    async with serving(wait) as peers:
        busy = [await peers.connect() for _ in range(2)]
        busy[0].send(b"POST / ", HEAD, b"Content-Length: 100\r\n\r\n", b"x" * 100)
        await asyncio.sleep(0.05)
        busy[1].send(b"POST / ", HEAD, b"Content-Length: 60\r\n\r\n", b"x" * 60)
        status, headers, _ = await busy[1].reply()
        assert (status, headers["retry-after"]) == (503, "1")
        busy[1] = await peers.connect()
        await asyncio.sleep(0.05)
        status, _, body = await (await peers.connect()).reply()
        assert status == 503
        assert b"more than 2 connections" in body
        release.set()
        assert (await busy[0].reply())[0] == 200


@pytest.mark.real_loop
async def test_a_slow_reader_does_not_hold_up_others() -> None:
    async def answer(request: Request) -> Response:
        body = b"x" * 50_000_000 if request.path == "/large" else b"small"
        return Response(200, body, "application/json")

    async with serving(answer, LIMITS._replace(max_pending_bytes=10**9)) as peers:
        slow = await peers.connect()
        slow.send(b"GET /large ", HEAD, b"\r\n")
        await asyncio.sleep(0.1)
        other = await peers.connect()
        other.send(b"GET /small ", HEAD, b"\r\n")
        async with asyncio.timeout(5):
            assert (await other.reply())[2] == b"small"
        await asyncio.sleep(0.5)
        slow.writer.transport.abort()


@pytest.mark.real_loop
async def test_a_client_that_has_gone_ends_what_waits_for_it() -> None:
    ended = asyncio.Event()

    async def wait(_: Request) -> Response:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        raise AssertionError

    async with serving(wait) as peers:
        peer = await peers.connect()
        peer.send(b"GET / ", HEAD, b"\r\n")
        await asyncio.sleep(0.05)
        peer.writer.close()
        async with asyncio.timeout(5):
            await ended.wait()


@pytest.mark.real_loop
async def test_a_stop_answers_running_requests_and_closes_idle_connections() -> None:
    release = asyncio.Event()

    async def wait(request: Request) -> Response:
        await release.wait()
        return await echo(request)

    async with serving(wait) as peers:
        busy, idle = await peers.connect(), await peers.connect()
        busy.send(b"GET /a ", HEAD, b"\r\n")
        await asyncio.sleep(0.05)
        peers.server.stop_listening()
        assert await idle.is_closed()
        release.set()
        status, headers, body = await busy.reply()
        assert (status, headers["connection"], body) == (200, "close", b'"GET /a"')
        async with asyncio.timeout(5):
            await peers.server.wait_closed()
        with pytest.raises(OSError):
            await peers.connect()


@pytest.mark.real_loop
async def test_a_request_that_never_ends_does_not_prevent_a_stop() -> None:
    async def wait(_: Request) -> Response:
        await asyncio.sleep(60)
        raise AssertionError

    async with serving(wait) as peers:
        peer = await peers.connect()
        peer.send(b"POST / ", HEAD, b"Content-Length: 0\r\n\r\n")
        await asyncio.sleep(0.05)
        peers.server.stop_listening()
        async with asyncio.timeout(5):
            await peers.server.wait_closed()
