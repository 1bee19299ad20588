"""What handlers use, and the request they are called with.

Owns: the list. Never: builds or closes anything; `server` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from ottla.client.admin.aio import Admin
from ottla.client.producer.aio import Producer
from ottla.gateway.http_messages import Request, parse_json
from ottla.gateway.instances import ConsumerInstances
from ottla.gateway.json_fields import JsonObject
from ottla.gateway.limits import Limits
from ottla.gateway.media_types import check_json
from ottla.gateway.routes import PathNames

LARGE_BODY_BYTES: Final = 64 * 1024
"""From here on a body is read on a thread, so that other requests are not kept waiting, and one at
a time: its value takes several times the memory of its text."""

ValueT = TypeVar("ValueT")


class Services(NamedTuple):
    """One producer and one admin for all requests, and the consumers by name."""

    producer: Producer
    admin: Admin
    consumers: ConsumerInstances
    limits: Limits
    large_bodies: asyncio.Lock
    scheme: str = "http"


class Call(NamedTuple):
    """A request, the names in its path, and the type that its reply has unless it has records."""

    request: Request
    names: PathNames
    reply_type: str

    @property
    def accept(self) -> str | None:
        return self.request.headers.get("accept")

    @property
    def content_type(self) -> str | None:
        return self.request.headers.get("content-type")

    async def json(self, services: Services, read: Callable[[JsonObject], ValueT]) -> ValueT:
        """What `read` makes of the body, a JSON object that is declared as such."""
        check_json(self.content_type)
        return await self.parse_body(services, read)

    async def json_if_any(
        self, services: Services, read: Callable[[JsonObject], ValueT]
    ) -> ValueT | None:
        """The same if there is a body; a JSON null counts as none."""
        is_empty = self.request.body.strip() in (b"", b"null")
        return None if is_empty else await self.json(services, read)

    async def parse_body(self, services: Services, read: Callable[[JsonObject], ValueT]) -> ValueT:
        """What `read` makes of the body, whatever its content type."""

        def parse() -> ValueT:
            return read(JsonObject(parse_json(self.request.body)))

        if len(self.request.body) < LARGE_BODY_BYTES:
            return parse()
        async with services.large_bodies:
            return await asyncio.to_thread(parse)
