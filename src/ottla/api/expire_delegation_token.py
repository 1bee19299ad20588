"""ExpireDelegationToken (40): another expiry of a token, or its end at once."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.token_requests import audit_change, check_connection, refuse_expiry, token_store
from ottla.model.errors import ErrorCode
from ottla.protocol.encode import ms
from ottla.security.delegation_tokens import expired

KEY: Final = 40


async def expire_delegation_token(request: Request, ctx: Context) -> Fields:
    check_connection(ctx)
    store = token_store(ctx)
    token = store.tokens.find(bytes(request.hmac))
    now_ms = ctx.services.broker.clock.wall_ms()
    changed = expired(token, ctx.peer.principal, ms(request.expiry_time_period), now_ms)
    if changed is None:
        await store.remove(token.id)
    else:
        await store.update(changed)
    audit_change(ctx, "expired", token)
    return {
        "error_code": ErrorCode.none,
        "expiry_timestamp": now_ms if changed is None else changed.expires_ms,
        "throttle_time": 0,
    }


API = Api(KEY, "ExpireDelegationToken", range(1, 3), expire_delegation_token, refuse_expiry)
