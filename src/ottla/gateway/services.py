"""What handlers use, and the request they are called with.

Owns: the list. Never: builds or closes anything; `server` does.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from ottla.client.admin.aio import Admin
from ottla.client.producer.aio import Producer
from ottla.gateway.http_messages import Request, parse_json
from ottla.gateway.instances import ConsumerInstances
from ottla.gateway.json_fields import JsonObject
from ottla.gateway.limits import Limits
from ottla.gateway.media_types import check_json
from ottla.gateway.routes import PathNames

LARGE_BODY_BYTES: Final = 64 * 1024
"""From here on a body is parsed on a thread, so that other requests are not kept waiting."""


class Services(NamedTuple):
    """One producer and one admin for all requests, and the consumers by name."""

    producer: Producer
    admin: Admin
    consumers: ConsumerInstances
    limits: Limits
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

    async def json(self) -> JsonObject:
        """The body, which must be a JSON object and declared as such."""
        check_json(self.content_type)
        return await self.parse_body()

    async def parse_body(self) -> JsonObject:
        """The body as an object, whatever its content type."""
        body = self.request.body
        if len(body) < LARGE_BODY_BYTES:
            return JsonObject(parse_json(body))
        return JsonObject(await asyncio.to_thread(parse_json, body))

    async def json_if_any(self) -> JsonObject | None:
        """The body if there is one; a JSON null counts as none."""
        body = self.request.body.strip()
        return None if body in (b"", b"null") else await self.json()
