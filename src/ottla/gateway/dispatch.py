"""From a request to its reply: the table of paths, and what errors become.

Owns: the table, the time a request may take, and that each failure is a JSON body with a code.
Never: reads a socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from ottla.client.errors import SerializationError
from ottla.gateway import consumers, produce, topics
from ottla.gateway.errors import KAFKA_FAILED_RETRIABLE, HttpError, http_error
from ottla.gateway.http_messages import Request, Response, error_reply
from ottla.gateway.media_types import V2, reply_type
from ottla.gateway.routes import Route, find_route
from ottla.gateway.services import Call, Services
from ottla.model.errors import KafkaError, UserError

log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Call, Services], Awaitable[Response]]

_INSTANCE: Final = "/consumers/{group}/instances/{instance}"
ROUTES: Final[tuple[Route[Handler], ...]] = (
    Route("GET", "/", topics.root),
    Route("GET", "/brokers", topics.list_brokers),
    Route("GET", "/topics", topics.list_topics),
    Route("GET", "/topics/{topic}", topics.describe_topic),
    Route("POST", "/topics/{topic}", produce.to_topic),
    Route("GET", "/topics/{topic}/partitions", topics.list_partitions),
    Route("GET", "/topics/{topic}/partitions/{partition}", topics.describe_partition),
    Route("POST", "/topics/{topic}/partitions/{partition}", produce.to_partition),
    Route("GET", "/topics/{topic}/partitions/{partition}/offsets", topics.partition_offsets),
    Route("POST", "/consumers/{group}", consumers.create),
    Route("DELETE", _INSTANCE, consumers.delete),
    Route("POST", f"{_INSTANCE}/subscription", consumers.subscribe),
    Route("GET", f"{_INSTANCE}/subscription", consumers.subscription),
    Route("DELETE", f"{_INSTANCE}/subscription", consumers.unsubscribe),
    Route("POST", f"{_INSTANCE}/assignments", consumers.assign),
    Route("GET", f"{_INSTANCE}/assignments", consumers.assignment),
    Route("GET", f"{_INSTANCE}/records", consumers.read),
    Route("POST", f"{_INSTANCE}/offsets", consumers.commit),
    Route("GET", f"{_INSTANCE}/offsets", consumers.list_committed),
    Route("POST", f"{_INSTANCE}/positions", consumers.seek),
    Route("POST", f"{_INSTANCE}/positions/beginning", consumers.seek_to_beginning),
    Route("POST", f"{_INSTANCE}/positions/end", consumers.seek_to_end),
)


async def answer(request: Request, services: Services) -> Response:
    """The reply to a request, whatever happens."""
    accept = request.headers.get("accept")
    try:
        return await _handle(request, services)
    except HttpError as error:
        return error_reply(error, accept)
    except TimeoutError as error:
        text = str(error) or f"no reply within {services.limits.request_timeout_ms} ms"
        return error_reply(HttpError(KAFKA_FAILED_RETRIABLE, text), accept)
    except (KafkaError, OSError, UserError, SerializationError) as error:
        return error_reply(http_error(error), accept)
    except Exception as error:
        log.exception("request failed: method=%s path=%s", request.method, request.path)
        return error_reply(HttpError(500, f"internal error: {type(error).__name__}"), accept)


async def _handle(request: Request, services: Services) -> Response:
    route = find_route(ROUTES, request.method, request.segments)
    accept = request.headers.get("accept")
    # Of records the type depends on the instance's format, which the handler knows.
    chosen = V2 if route.handler is consumers.read else reply_type(accept)
    async with asyncio.timeout(services.limits.request_timeout_ms / 1e3):
        return await route.handler(Call(request, route.names, chosen), services)
