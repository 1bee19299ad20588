"""One connection: HTTP/1.1 requests in, replies out, one at a time.

Owns: the limits on what a client sends and how slowly, and that a client which has gone does not
keep a reader waiting. Never: knows a path; h11 knows the syntax, `dispatch` the API.

A refused request closes the connection where its body has not been read to the end. What still
arrives is read and dropped for a moment: a socket closed before loses the reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final, TypeAlias

import h11

from ottla.gateway.errors import HttpError
from ottla.gateway.http_messages import Request, Response, error_reply, request_of
from ottla.gateway.limits import Limits, PendingBytes

log = logging.getLogger(__name__)

CHUNK_BYTES: Final = 64 * 1024
DROP_TIMEOUT_S: Final = 2.0
COMMON_HEADERS: Final = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))

Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


class Connection:
    """Serves one client until it closes, breaks the protocol, or is too slow."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answer: Answer,
        limits: Limits,
        pending: PendingBytes,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._limits = limits
        self._pending = pending
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.max_header_bytes)
        self._reserved = 0
        self._is_idle = True
        self._is_stopping = False

    async def serve(self) -> None:
        """Answer requests until the connection ends."""
        try:
            while await self._serve_request():
                self._http.start_next_cycle()
        except (OSError, TimeoutError, h11.ProtocolError) as error:
            log.debug("connection closed: %s", error)
        except Exception:
            log.exception("connection closed: unexpected error")
        finally:
            self._writer.close()
            with suppress(OSError, TimeoutError):
                await self._writer.wait_closed()

    def stop(self) -> None:
        """Close after the running request, or at once if there is none."""
        self._is_stopping = True
        if self._is_idle:
            self._writer.close()

    def abort(self) -> None:
        """Close at once."""
        self._writer.transport.abort()

    async def refuse(self, error: HttpError) -> None:
        """Answer with an error and close."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send(error_reply(error), closing=True)
            await self._drop_input()

    async def _serve_request(self) -> bool:
        """Answer one request; whether another may follow."""
        try:
            request = await self._receive()
            if request is None:
                return False
            response = await self._answer_while_connected(request)
            if response is None:
                return False
            await self._send(response, with_body=request.method != "HEAD")
        except HttpError as error:
            await self.refuse(error)
            return False
        except h11.RemoteProtocolError as error:
            await self.refuse(HttpError(error.error_status_hint, f"HTTP: {error}"))
            return False
        finally:
            self._pending.release(self._reserved)
            self._reserved = 0
        self._is_idle = True
        return not self._is_stopping and self._http.our_state is h11.DONE

    # in

    async def _receive(self) -> Request | None:
        """The next request with its body; None if there is none."""
        try:
            async with asyncio.timeout(self._limits.receive_timeout_ms / 1e3):
                event = await self._next_event()
                if not isinstance(event, h11.Request):
                    return None
                self._is_idle = False
                headers = self._checked_headers(event)
                body = await self._receive_body(headers)
        except TimeoutError:
            if self._is_idle and not self._http.trailing_data[0]:
                return None
            text = f"the request did not arrive within {self._limits.receive_timeout_ms} ms"
            raise HttpError(408, text) from None
        return request_of(event.method.decode(), event.target.decode("latin-1"), headers, body)

    def _checked_headers(self, request: h11.Request) -> Mapping[str, str]:
        """h11 bounds only headers that arrive in pieces."""
        size = len(request.target) + sum(len(name) + len(value) for name, value in request.headers)
        if size > self._limits.max_header_bytes:
            text = f"headers: expected at most {self._limits.max_header_bytes} bytes"
            raise HttpError(431, text)
        return headers_of(request)

    async def _receive_body(self, headers: Mapping[str, str]) -> bytes:
        if self._pending.is_full:
            raise self._overload_error()
        if headers.get("content-encoding", "identity") != "identity":
            raise HttpError(415, "Content-Encoding: expected none")
        length = headers.get("content-length")
        if length is not None:
            self._reserve(int(length))
        parts: list[bytes] = []
        while isinstance(event := await self._next_event(), h11.Data):
            if length is None:
                self._reserve(len(event.data))
            parts.append(bytes(event.data))
        return b"".join(parts)

    def _reserve(self, count: int) -> None:
        """Make room for so many bytes of this body, or refuse it."""
        if self._reserved + count > self._limits.max_body_bytes:
            text = f"request body: expected at most {self._limits.max_body_bytes} bytes"
            raise HttpError(413, text)
        if not self._pending.reserve(count):
            raise self._overload_error()
        self._reserved += count

    def _overload_error(self) -> HttpError:
        return HttpError(503, "too many bytes of requests and replies pending", retry_after_s=1)

    async def _next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                self._writer.write(
                    self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b""
                )
            self._http.receive_data(await self._reader.read(CHUNK_BYTES))

    async def _drop_input(self) -> None:
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(DROP_TIMEOUT_S):
                while await self._reader.read(CHUNK_BYTES):
                    pass

    # out

    async def _answer_while_connected(self, request: Request) -> Response | None:
        """The reply; None if the client disconnects during a GET, which changes nothing."""
        if request.method != "GET":
            return await self._answer(request)
        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(_call(self._answer, request))
            watching = tasks.create_task(self._cancel_on_disconnect(answering))
            await asyncio.wait([answering])
            watching.cancel()
        return None if answering.cancelled() else answering.result()

    async def _cancel_on_disconnect(self, answering: asyncio.Task[Response]) -> None:
        try:
            data = await self._reader.read(CHUNK_BYTES)
        except OSError:
            data = b""
        if data:  # the next request, before this one is answered
            self._http.receive_data(data)
        else:
            answering.cancel()

    async def _send(
        self, response: Response, *, closing: bool = False, with_body: bool = True
    ) -> None:
        headers = [*COMMON_HEADERS, *response.headers]
        if response.content_type:
            headers.append(("Content-Type", response.content_type))
        if response.status != 204:
            headers.append(("Content-Length", str(len(response.body))))
        if closing or self._is_stopping:
            headers.append(("Connection", "close"))
        self._pending.add(len(response.body))
        try:
            head = h11.Response(
                status_code=response.status,
                headers=headers,
                reason=HTTPStatus(response.status).phrase,
            )
            self._writer.write(self._http.send(head) or b"")
            if response.body and with_body:
                self._writer.write(self._http.send(h11.Data(data=response.body)) or b"")
            self._http.send(h11.EndOfMessage())
            async with asyncio.timeout(self._limits.send_timeout_ms / 1e3):
                await self._writer.drain()
        finally:
            self._pending.release(len(response.body))


def headers_of(request: h11.Request) -> dict[str, str]:
    """Headers by name in lower case; of several with one name, all values."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in request.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def _call(answer: Answer, request: Request) -> Response:
    return await answer(request)
