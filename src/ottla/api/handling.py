"""Calls the handler of an API, after checking permissions, and turns every failure into a refusal.

Owns the order of the checks and the error code of unexpected failures. Never replies: dispatch and
the envelope do.
"""

from __future__ import annotations

import logging
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.audit_log import ADMINISTRATIVE, log_change
from ottla.api.authorise import acts_as_broker, check
from ottla.model.errors import Disconnect, ErrorCode, KafkaError
from ottla.store.port import SessionExpired, StoreUnavailable

log = logging.getLogger(__name__)

LARGE_BYTES: Final = 8 << 10
"""Of a request that may have more items than one slice should refuse."""


async def handle(api: Api, request: Request, ctx: Context) -> Fields:
    """The fields of the reply; a refusal is a reply, too."""
    try:
        return await attempt(api, request, ctx)
    except KafkaError as refusal:
        return await refused(api, request, refusal, ctx)


async def refused(api: Api, request: Request, refusal: KafkaError, ctx: Context) -> Fields:
    """The fields of a refusal; one with very many items is made in the thread pool."""
    assert api.refuse is not None
    if not ctx.is_large:
        return api.refuse(request, refusal.code, refusal.message)
    pool = ctx.services.replicas.hosted.environment.thread_pool
    return await pool.run(api.refuse, request, refusal.code, refusal.message)


async def attempt(api: Api, request: Request, ctx: Context) -> Fields:
    """The fields of the reply. Raises only KafkaError and Disconnect."""
    assert api.handler is not None
    try:
        if api.between_brokers and not acts_as_broker(ctx.peer, ctx.services):
            raise KafkaError(ErrorCode.cluster_authorization_failed)
        check(ctx.services.authorizer, ctx.peer, api.needs, request)
        reply = await api.handler(request, ctx)
        if api.key in ADMINISTRATIVE:
            log_change(api, request, ctx, reply)
        return reply
    except (KafkaError, Disconnect):
        raise
    except (StoreUnavailable, SessionExpired) as error:
        version = ctx.call.version
        log.warning("%s v%d failed: metadata store unavailable: %s", api.name, version, error)
        raise KafkaError(
            ErrorCode.request_timed_out, "The metadata store is unavailable; retry."
        ) from None
    except Exception:
        log.exception("%s v%d failed", api.name, ctx.call.version)
        raise KafkaError(ErrorCode.unknown_server_error) from None
