"""Delegation tokens: creating, renewing, expiring and listing them."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.admin import api_keys
from ottla.client.admin.session import Session
from ottla.client.cluster import Target
from ottla.client.errors import ErrorCode, UserError, refusal
from ottla.protocol.encode import ms
from ottla.protocol.schema import KioMessage, KioStruct
from ottla.protocol.wire import Fields


class DelegationToken(NamedTuple):
    """A token; principals as `User:alice`, times in ms since 1970.

    `id` and `hmac` are user and password of a login by SCRAM with `tokenauth="true"`.
    """

    id: str
    hmac: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    def __repr__(self) -> str:
        return f"DelegationToken({self.id!r}, [hidden], owner={self.owner!r})"


async def create_delegation_token(
    session: Session,
    *,
    owner: str | None = None,
    renewers: Iterable[str] = (),
    max_lifetime_ms: int = -1,
) -> DelegationToken:
    """A new token of the user who asks, or of `owner`."""
    listed = tuple(renewers)
    kind, name = (None, None) if owner is None else _split(owner)
    fields: Fields = {
        "owner_principal_type": kind,
        "owner_principal_name": name,
        "renewers": [_principal(renewer) for renewer in listed],
        "max_lifetime": max_lifetime_ms,
    }
    reply = await session.once(Target.ANY, api_keys.CREATE_DELEGATION_TOKEN, fields)
    _check(reply)
    return _token(reply, listed)


async def renew_delegation_token(session: Session, hmac: str, period_ms: int = -1) -> int:
    """When the token expires now, in ms since 1970."""
    fields: Fields = {"hmac": _decode_hmac(hmac), "renew_period": period_ms}
    reply = await session.once(Target.ANY, api_keys.RENEW_DELEGATION_TOKEN, fields)
    _check(reply)
    return ms(reply.expiry_timestamp)


async def expire_delegation_token(session: Session, hmac: str, period_ms: int = -1) -> int:
    """When the token expires now; a negative period ends it at once."""
    fields: Fields = {"hmac": _decode_hmac(hmac), "expiry_time_period": period_ms}
    reply = await session.once(Target.ANY, api_keys.EXPIRE_DELEGATION_TOKEN, fields)
    _check(reply)
    return ms(reply.expiry_timestamp)


async def describe_delegation_tokens(
    session: Session, owners: Iterable[str] | None = None
) -> list[DelegationToken]:
    """The tokens of these owners, or all, that the user may see; the oldest first."""
    named = None if owners is None else [_principal(owner) for owner in owners]
    fields: Fields = {"owners": named}
    reply = await session.once(Target.ANY, api_keys.DESCRIBE_DELEGATION_TOKEN, fields)
    _check(reply)
    tokens = [_token(row, tuple(map(_principal_text, row.renewers))) for row in reply.tokens]
    return sorted(tokens, key=lambda token: (token.issued_ms, token.id))


def _check(reply: KioMessage) -> None:
    if reply.error_code is not ErrorCode.none:
        raise refusal(reply.error_code, None)


def _token(row: KioStruct, renewers: tuple[str, ...]) -> DelegationToken:
    owner = _principal_text(row)
    requester_name = getattr(row, "token_requester_principal_name", "")
    requester = (
        f"{row.token_requester_principal_type}:{requester_name}" if requester_name else owner
    )
    return DelegationToken(
        row.token_id,
        base64.b64encode(row.hmac).decode(),
        owner,
        requester,
        renewers,
        ms(row.issue_timestamp),
        ms(row.expiry_timestamp),
        ms(row.max_timestamp),
    )


def _principal_text(row: KioStruct) -> str:
    return f"{row.principal_type}:{row.principal_name}"


def _principal(text: str) -> Fields:
    kind, name = _split(text)
    return {"principal_type": kind, "principal_name": name}


def _split(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    if not kind or not name:
        raise UserError(f"principal {principal!r}: expected a type and a name, such as User:alice")
    return kind, name


def _decode_hmac(hmac: str) -> bytes:
    try:
        return base64.b64decode(hmac, validate=True)
    except ValueError:
        raise UserError("the HMAC of a delegation token is expected in base64") from None
