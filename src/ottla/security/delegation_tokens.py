"""Delegation tokens: who may use, renew and expire them, and how they log in. Pure.

Owns: the rules of Kafka's tokens, and all tokens of the cluster as this broker knows them. A
token's password is the HMAC of its id under `delegation.token.secret.key`, so nothing that is
stored is secret. Never reads or writes the metadata store: `shared_state/token_store.py` does.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.model.clock import Clock, WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.sasl.scram import (
    HASHES,
    TOKEN_SHAPE,
    Credential,
    TokenLogin,
    salted_password,
)

ID_BYTES: Final = 16
HMAC_HASH: Final = "sha512"
MAX_RENEWERS: Final = 1_000
"""Of one token: to encode 40,000 keeps the event loop for 50 ms."""


class TokenLifetimes(NamedTuple):
    """`delegation.token.max.lifetime.ms` and `delegation.token.expiry.time.ms`."""

    max_ms: int
    renewal_ms: int


class Token(NamedTuple):
    """A token without its password; principals as `User:alice`."""

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: WallMs
    max_ms: WallMs
    expires_ms: WallMs

    def concerns(self, principal: str) -> bool:
        """Whether the principal owns it, asked for it or may renew it."""
        return principal in (self.owner, self.requester) or principal in self.renewers

    def has_expired(self, now_ms: WallMs) -> bool:
        return min(self.max_ms, self.expires_ms) < now_ms


class NewToken(NamedTuple):
    """What a client asks for. `lifetime_ms`: 0 or less is the default."""

    owner: str
    requester: str
    renewers: tuple[str, ...] = ()
    lifetime_ms: int = -1


def created(new: NewToken, id_bytes: bytes, now_ms: WallMs, lifetimes: TokenLifetimes) -> Token:
    """KafkaError if too many may renew it."""
    if len(new.renewers) > MAX_RENEWERS:
        raise KafkaError(
            ErrorCode.invalid_request,
            f"A delegation token has at most {MAX_RENEWERS} renewers, not {len(new.renewers)}.",
        )
    limit_ms = lifetimes.max_ms
    lifetime_ms = limit_ms if new.lifetime_ms <= 0 else min(new.lifetime_ms, limit_ms)
    max_ms = WallMs(now_ms + lifetime_ms)
    expires_ms = WallMs(min(max_ms, now_ms + lifetimes.renewal_ms))
    id = base64.urlsafe_b64encode(id_bytes).rstrip(b"=").decode()
    return Token(id, new.owner, new.requester, new.renewers, now_ms, max_ms, expires_ms)


def renewed(
    token: Token, principal: str, period_ms: int, now_ms: WallMs, lifetimes: TokenLifetimes
) -> Token:
    """The token with a later expiry, but never beyond its maximum; KafkaError."""
    _check_may_change(token, principal)
    _check_valid(token, now_ms)
    period_ms = lifetimes.renewal_ms if period_ms < 0 else period_ms
    return token._replace(expires_ms=WallMs(min(token.max_ms, now_ms + period_ms)))


def expired(token: Token, principal: str, period_ms: int, now_ms: WallMs) -> Token | None:
    """The token with another expiry; None: it ends at once. KafkaError."""
    _check_may_change(token, principal)
    if period_ms < 0:
        return None
    _check_valid(token, now_ms)
    return token._replace(expires_ms=WallMs(min(token.max_ms, now_ms + period_ms)))


def _check_may_change(token: Token, principal: str) -> None:
    if principal != token.owner and principal not in token.renewers:
        raise KafkaError(ErrorCode.delegation_token_owner_mismatch)


def _check_valid(token: Token, now_ms: WallMs) -> None:
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.delegation_token_expired)


class DelegationTokens:
    """All tokens. One writer: `shared_state/token_store.py`. An empty `secret` disables them."""

    def __init__(self, secret: str, clock: Clock) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._by_id: dict[str, Token] = {}
        self._ids: dict[bytes, str] = {}  # by HMAC
        self._credentials: dict[tuple[str, str], Credential] = {}  # by id and mechanism

    @property
    def enabled(self) -> bool:
        return bool(self._secret)

    @property
    def all(self) -> Mapping[str, Token]:
        return self._by_id

    def hmac(self, id: str) -> bytes:
        return hmac.digest(self._secret, id.encode(), HMAC_HASH)

    def find(self, mac: bytes) -> Token:
        """The token of an HMAC, or KafkaError."""
        token = self._by_id.get(self._ids.get(mac, ""))
        if token is None:
            raise KafkaError(ErrorCode.delegation_token_not_found)
        return token

    def put(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            self._by_id[token.id] = token
            self._ids[self.hmac(token.id)] = token.id

    def drop(self, ids: Iterable[str]) -> None:
        for id in ids:
            if self._by_id.pop(id, None) is not None:
                del self._ids[self.hmac(id)]
                for mechanism in HASHES:
                    self._credentials.pop((id, mechanism), None)

    def expired_ids(self) -> list[str]:
        now_ms = self._clock.wall_ms()
        return [token.id for token in self._by_id.values() if token.has_expired(now_ms)]

    def login(self, id: str, mechanism: str) -> TokenLogin | None:
        """What a login with this token must prove; None: there is no such token any more.

        The credential of a token is computed once for each mechanism, some 2 ms, at its first
        login: computing those of all tokens at the start would take minutes.
        """
        token = self._by_id.get(id)
        if token is None or token.has_expired(self._clock.wall_ms()):
            return None
        key = (id, mechanism)
        if key not in self._credentials:
            self._credentials[key] = self._credential(id, mechanism)
        return TokenLogin(self._credentials[key], token.owner, token.expires_ms)

    def _credential(self, id: str, mechanism: str) -> Credential:
        password = base64.b64encode(self.hmac(id)).decode()
        salt_bytes, iterations = TOKEN_SHAPE
        salt = hmac.digest(self._secret, f"salt:{mechanism}:{id}".encode(), HMAC_HASH)[:salt_bytes]
        salted = salted_password(mechanism, password, salt, iterations)
        return Credential.of_salted(mechanism, salted, salt, iterations)
