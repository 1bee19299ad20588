"""CreateDelegationToken (38): a token that others may log in with as its owner."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.token_requests import (
    NO_TIMESTAMP,
    audit_change,
    check_connection,
    lifetimes,
    principal_fields,
    token_store,
)
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.encode import ms
from ottla.security.acl import Kind, Operation
from ottla.security.delegation_tokens import ID_BYTES, NewToken, created

KEY: Final = 38
USER: Final = "User"


async def create_delegation_token(request: Request, ctx: Context) -> Fields:
    """As Kafka's, a refusal names who asked."""
    try:
        return await _create(request, ctx)
    except KafkaError as refusal:
        requester = ctx.peer.principal
        return {
            **refuse(request, refusal.code, refusal.message),
            **principal_fields(requester),
            **principal_fields(requester, "token_requester_"),
        }


async def _create(request: Request, ctx: Context) -> Fields:
    check_connection(ctx)
    requester = ctx.peer.principal
    owner = _owner(request, requester)
    if owner != requester and not ctx.allows(Operation.CREATE_TOKENS, Kind.USER, owner):
        raise KafkaError(ErrorCode.delegation_token_authorization_failed)
    renewers = []
    async for renewer in in_slices(request.renewers):
        if renewer.principal_type != USER:
            raise KafkaError(ErrorCode.invalid_principal_type)
        renewers.append(f"{USER}:{renewer.principal_name}")
    store = token_store(ctx)
    new = NewToken(owner, requester, tuple(dict.fromkeys(renewers)), ms(request.max_lifetime))
    now_ms = ctx.services.broker.clock.wall_ms()
    token = created(new, store.random_bytes(ID_BYTES), now_ms, lifetimes(ctx))
    await store.create(token)
    audit_change(ctx, "created", token)
    return {
        "error_code": ErrorCode.none,
        **principal_fields(token.owner),
        **principal_fields(token.requester, "token_requester_"),
        "issue_timestamp": token.issued_ms,
        "expiry_timestamp": token.expires_ms,
        "max_timestamp": token.max_ms,
        "token_id": token.id,
        "hmac": store.tokens.hmac(token.id),
        "throttle_time": 0,
    }


def _owner(request: Request, requester: str) -> str:
    """Who asks, unless the request names another."""
    kind = request.owner_principal_type
    name = request.owner_principal_name
    if not name:
        return requester
    if kind != USER:
        raise KafkaError(ErrorCode.invalid_principal_type)
    return f"{USER}:{name}"


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {
        "error_code": code,
        **principal_fields(""),
        **principal_fields("", "token_requester_"),
        "issue_timestamp": NO_TIMESTAMP,
        "expiry_timestamp": NO_TIMESTAMP,
        "max_timestamp": NO_TIMESTAMP,
        "token_id": "",
        "hmac": b"",
        "throttle_time": 0,
    }


API = Api(KEY, "CreateDelegationToken", range(1, 4), create_delegation_token, refuse)
