"""The listening socket and its connections.

Owns: how many connections there are, and the order of a stop. Never: reads a request.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from ottla.gateway.connection import Answer, Connection
from ottla.gateway.errors import HttpError
from ottla.gateway.limits import Limits, PendingBytes

log = logging.getLogger(__name__)

TLS_HANDSHAKE_S: Final = 10.0
RETRY_AFTER_S: Final = 1


class HttpServer:
    """Serves HTTP, or HTTPS, until it is stopped."""

    def __init__(self, answer: Answer, limits: Limits) -> None:
        self._answer = answer
        self._limits = limits
        self._pending = PendingBytes(limits.max_pending_bytes)
        self._connections: set[Connection] = set()
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; returns the actual port."""
        handshake_s = None if tls is None else TLS_HANDSHAKE_S
        self._server = await asyncio.start_server(
            self._serve, host, port, ssl=tls, ssl_handshake_timeout=handshake_s
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def stop_listening(self) -> None:
        """Accept no more connections, and close those without a running request."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.stop()

    async def wait_closed(self) -> None:
        """Wait for running requests to be answered, up to the timeout."""
        try:
            async with asyncio.timeout(self._limits.stop_timeout_ms / 1e3):
                await self._all_closed.wait()
        except TimeoutError:
            log.warning(
                "requests aborted: count=%d timeout_ms=%d",
                *(len(self._connections), self._limits.stop_timeout_ms),
            )
            for connection in tuple(self._connections):
                connection.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, self._answer, self._limits, self._pending)
        is_too_many = len(self._connections) >= self._limits.max_connections
        if len(self._connections) >= 2 * self._limits.max_connections:
            connection.abort()  # not even an error for those: they would be as many again
            return
        self._connections.add(connection)
        self._all_closed.clear()
        try:
            if is_too_many:
                text = f"more than {self._limits.max_connections} connections"
                await connection.refuse(HttpError(503, text, retry_after_s=RETRY_AFTER_S))
                connection.stop()
            else:
                await connection.serve()
        except (OSError, TimeoutError) as error:
            log.debug("connection closed: %s", error)
        finally:
            self._connections.discard(connection)
            if not self._connections:
                self._all_closed.set()
