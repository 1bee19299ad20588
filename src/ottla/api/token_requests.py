"""What the APIs of delegation tokens have in common.

Owns: which connections may ask for tokens, and principals in these requests and replies. Never
decides about a token: `security/delegation_tokens.py` does.
"""

from __future__ import annotations

import logging
from typing import Final

from ottla.api.api import Context, Fields, Request
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.delegation_tokens import Token, TokenLifetimes
from ottla.shared_state.token_store import TokenStore

ANONYMOUS: Final = "User:ANONYMOUS"
NO_TIMESTAMP: Final = -1

audit = logging.getLogger("ottla.security.audit")


def check_connection(ctx: Context) -> None:
    """KafkaError unless the client has shown who it is, and not by a token."""
    peer = ctx.peer
    is_anonymous = peer.protocol == "SSL" and peer.principal == ANONYMOUS
    if peer.is_token or peer.protocol == "PLAINTEXT" or is_anonymous:
        raise KafkaError(ErrorCode.delegation_token_request_not_allowed)


def token_store(ctx: Context) -> TokenStore:
    store = ctx.services.shared.tokens
    if not store.tokens.enabled:
        raise KafkaError(ErrorCode.delegation_token_auth_disabled)
    return store


def lifetimes(ctx: Context) -> TokenLifetimes:
    config = ctx.services.config.current
    return TokenLifetimes(
        config.delegation_token_max_lifetime_ms, config.delegation_token_expiry_time_ms
    )


def principal_fields(principal: str, prefix: str = "") -> Fields:
    kind, _, name = principal.partition(":")
    return {f"{prefix}principal_type": kind, f"{prefix}principal_name": name}


def audit_change(ctx: Context, change: str, token: Token) -> None:
    audit.info(
        "delegation token %s: principal=%s host=%s token=%s owner=%s",
        change, ctx.peer.principal, ctx.peer.address, token.id, token.owner,
    )  # fmt: skip


def refuse_expiry(_: Request, code: ErrorCode, message: str | None) -> Fields:
    """Of RenewDelegationToken and ExpireDelegationToken."""
    return {"error_code": code, "expiry_timestamp": NO_TIMESTAMP, "throttle_time": 0}
