"""DescribeDelegationToken (41): the tokens that a client may see, with their HMACs."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.token_requests import check_connection, principal_fields, token_store
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode
from ottla.security.acl import Kind, Operation
from ottla.security.delegation_tokens import DelegationTokens, Token

KEY: Final = 41
SLICE: Final = 200
"""Tokens described before the loop may run other tasks."""


async def describe_delegation_token(request: Request, ctx: Context) -> Fields:
    check_connection(ctx)
    tokens = token_store(ctx).tokens
    owners = None
    if request.owners is not None:
        owners = {
            f"{owner.principal_type}:{owner.principal_name}"
            async for owner in in_slices(request.owners)
        }
    found = []
    async for token in in_slices(list(tokens.all.values()), SLICE):
        if _is_asked_for(token, owners) and _may_see(ctx, token):
            found.append(_token_fields(tokens, token))
    return {"error_code": ErrorCode.none, "tokens": found, "throttle_time": 0}


def _is_asked_for(token: Token, owners: set[str] | None) -> bool:
    """By `Token.concerns` of any owner that is named."""
    return owners is None or not owners.isdisjoint((token.owner, token.requester, *token.renewers))


def _may_see(ctx: Context, token: Token) -> bool:
    return (
        token.concerns(ctx.peer.principal)
        or ctx.allows(Operation.DESCRIBE, Kind.DELEGATION_TOKEN, token.id, noted=False)
        or ctx.allows(Operation.DESCRIBE_TOKENS, Kind.USER, token.owner, noted=False)
    )


def _token_fields(tokens: DelegationTokens, token: Token) -> Fields:
    return {
        **principal_fields(token.owner),
        **principal_fields(token.requester, "token_requester_"),
        "issue_timestamp": token.issued_ms,
        "expiry_timestamp": token.expires_ms,
        "max_timestamp": token.max_ms,
        "token_id": token.id,
        "hmac": tokens.hmac(token.id),
        "renewers": [principal_fields(renewer) for renewer in token.renewers],
    }


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {"error_code": code, "tokens": [], "throttle_time": 0}


API = Api(KEY, "DescribeDelegationToken", range(1, 4), describe_delegation_token, refuse)
