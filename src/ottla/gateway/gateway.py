"""A whole gateway: clients, consumer instances and the HTTP server, opened and closed in order.

Owns: the order, and the settings of clients that a gateway needs otherwise than other programs.
Never: parses an option of the command line.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from ottla.client.admin.aio import Admin
from ottla.client.producer.aio import Producer
from ottla.gateway.browser_guard import check_headers, is_loopback
from ottla.gateway.connection import Answer
from ottla.gateway.dispatch import answer
from ottla.gateway.errors import HttpError
from ottla.gateway.http_messages import Request, Response, error_reply
from ottla.gateway.instances import ConsumerInstances
from ottla.gateway.limits import Limits
from ottla.gateway.server import HttpServer
from ottla.gateway.services import Services
from ottla.model.clock import Clock

CALL_TIMEOUT: Final = {"default.api.timeout.ms": "20000"}
DELIVERY_TIMEOUTS: Final = {"request.timeout.ms": "10000", "delivery.timeout.ms": "20000"}
"""Shorter than a request may take, so that each record of it has its own error."""
MAX_BLOCK: Final = {"max.block.ms": "10000"}


class ClientSettings(NamedTuple):
    """How the clients reach the cluster, under Kafka's names."""

    admin: Mapping[str, str]
    producer: Mapping[str, str]
    consumer: Mapping[str, str]


class Listen(NamedTuple):
    """Where a gateway listens, and by which names it may be called there."""

    host: str = "127.0.0.1"
    port: int = 8082
    tls: ssl.SSLContext | None = None
    host_names: frozenset[str] = frozenset()

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def url(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}"


@asynccontextmanager
async def open_gateway(
    clients: ClientSettings,
    listen: Listen,
    limits: Limits,
    clock: Clock,
    new_name: Callable[[], str],
) -> AsyncIterator[str]:
    """A gateway that serves for as long as the block lasts; its URL."""
    async with (
        Admin(config={**CALL_TIMEOUT, **clients.admin}) as admin,
        Producer(config=producer_settings(clients.producer)) as producer,
        ConsumerInstances(
            {**CALL_TIMEOUT, **clients.consumer}, limits, clock, new_name
        ) as consumers,
    ):
        services = Services(producer, admin, consumers, limits, asyncio.Lock(), listen.scheme)
        server = HttpServer(guarded_answer(services, listen), limits)
        port = await server.start(listen.host, listen.port, listen.tls)
        try:
            yield listen.url(port)
        finally:
            server.stop_listening()
            consumers.wake()
            await server.wait_closed()


def guarded_answer(services: Services, listen: Listen) -> Answer:
    """Answers requests, except those that a web page of another site makes."""

    async def answer_own_clients(request: Request) -> Response:
        try:
            check_headers(request.headers, listen.host_names, loopback=listen.is_loopback)
        except HttpError as error:
            return error_reply(error)
        return await answer(request, services)

    return answer_own_clients


def producer_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Settings of the producer that all requests share."""
    timeouts = {} if given.keys() & DELIVERY_TIMEOUTS.keys() else DELIVERY_TIMEOUTS
    return {**MAX_BLOCK, **timeouts, **given}
