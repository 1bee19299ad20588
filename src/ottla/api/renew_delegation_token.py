"""RenewDelegationToken (39): a later expiry of a token, never beyond its maximum."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.token_requests import (
    audit_change,
    check_connection,
    lifetimes,
    refuse_expiry,
    token_store,
)
from ottla.model.errors import ErrorCode
from ottla.protocol.encode import ms
from ottla.security.delegation_tokens import renewed

KEY: Final = 39


async def renew_delegation_token(request: Request, ctx: Context) -> Fields:
    check_connection(ctx)
    store = token_store(ctx)
    token = renewed(
        store.tokens.find(bytes(request.hmac)),
        ctx.peer.principal,
        ms(request.renew_period),
        ctx.services.broker.clock.wall_ms(),
        lifetimes(ctx),
    )
    await store.update(token)
    audit_change(ctx, "renewed", token)
    return {
        "error_code": ErrorCode.none,
        "expiry_timestamp": token.expires_ms,
        "throttle_time": 0,
    }


API = Api(KEY, "RenewDelegationToken", range(1, 3), renew_delegation_token, refuse_expiry)
