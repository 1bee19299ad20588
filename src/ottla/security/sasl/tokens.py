"""JSON web tokens: which are accepted.

Owns: the checks of signature, algorithm, issuer, audience, times and claims. Everything that is not
shown to be right is refused. Never uses a key that a token itself contains or points to, nor the
algorithm it claims unless that belongs to the key.

Needs PyJWT and cryptography (the extra `security`), imported when a listener offers OAUTHBEARER.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.model.clock import Clock, WallMs
from ottla.model.errors import UserError
from ottla.security.sasl.key_sets import KeySet, WebKey

ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By the type of the key; never a symmetric one, never none."""
TOKEN_MAX_BYTES: Final = 32 << 10


Claims: TypeAlias = Mapping[str, Any]
"""The header or the claims of a token, from JSON that anybody may have sent."""


class BadToken(Exception):
    """The token is not accepted; the text is for the audit log."""


class TokenRules(NamedTuple):
    audiences: Sequence[str] = ()
    issuer: str | None = None
    clock_skew_s: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    unsecured: bool = False
    required_scopes: frozenset[str] = frozenset()


class Token(NamedTuple):
    user: str
    expires_ms: WallMs


class TokenChecker:
    def __init__(self, rules: TokenRules, keys: KeySet | None, clock: Clock) -> None:
        if keys is None and not rules.unsecured:
            raise UserError(
                "OAUTHBEARER needs sasl.oauthbearer.jwks.endpoint.url, or, for tests only, "
                "sasl.oauthbearer.unsecured.enable=true"
            )
        # Not at the first login: that would keep the event loop, at a moment anybody may choose.
        self._jwt = None if keys is None else _jwt()
        self._rules = rules
        self._keys = keys
        self._clock = clock

    def check(self, text: str) -> Token:
        """Who the token is for, or BadToken."""
        if len(text) > TOKEN_MAX_BYTES:
            raise BadToken("token is too long")
        header, claims = _part(text, 0), _part(text, 1)
        if header.get("alg") == "none":
            if not self._rules.unsecured:
                raise BadToken("token is not signed")
            if text.count(".") != 2 or not text.endswith("."):
                raise BadToken("malformed token")
        else:
            claims = self._verify(text, header)
        return self._accept(claims)

    def _verify(self, text: str, header: Claims) -> Claims:
        jwt = self._jwt
        key_id = header.get("kid")
        if not isinstance(key_id, str | None):
            raise BadToken("malformed token")
        keys = self._keys.keys if self._keys is not None else {}
        entry = keys.get(key_id) if key_id is not None else _only(keys)
        if jwt is None or entry is None:
            raise BadToken("token is signed with an unknown key")
        algorithms = ALGORITHMS.get(str(entry.get("kty")), ())
        if entry.get("alg") is not None:
            algorithms = tuple(name for name in algorithms if name == entry["alg"])
        if header.get("alg") not in algorithms:
            raise BadToken("token is signed with an algorithm that its key is not for")
        off = {name: False for name in ("verify_exp", "verify_aud", "verify_iss", "verify_nbf")}
        try:
            key = jwt.PyJWK(entry, algorithm=header["alg"])
            claims: Claims = jwt.decode(
                text, key, algorithms=[header["alg"]], options={**off, "verify_iat": False}
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise BadToken(f"invalid signature: {type(error).__name__}") from None
        return claims

    def _accept(self, claims: Claims) -> Token:
        """By the clock that is handed in, not the one of the library."""
        rules, now_s = self._rules, self._clock.wall_ms() / 1e3
        expires = _time(claims, "exp")
        if expires is None:
            raise BadToken("token has no expiry")
        if expires + rules.clock_skew_s <= now_s:
            raise BadToken("token has expired")
        for name in ("nbf", "iat"):
            begins = _time(claims, name)
            if begins is not None and begins - rules.clock_skew_s > now_s:
                raise BadToken("token is not valid yet")
        if rules.issuer is not None and claims.get("iss") != rules.issuer:
            raise BadToken("token is of another issuer")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if rules.audiences and not any(each in rules.audiences for each in audiences):
            raise BadToken("token is for another audience")
        if not rules.required_scopes <= _scopes(claims.get(rules.scope_claim)):
            raise BadToken("token lacks a scope")
        user = claims.get(rules.subject_claim)
        if not isinstance(user, str) or not user.strip():
            raise BadToken(f"token has no claim {rules.subject_claim}")
        return Token(user, WallMs(int(expires * 1000)))


def unsecured_token(user: str, now_ms: WallMs, lifetime_ms: int = 3_600_000) -> str:
    """A token without a signature, for tests of clients and brokers that allow them."""
    claims = {"sub": user, "iat": now_ms / 1e3, "exp": (now_ms + lifetime_ms) / 1e3}
    parts = (json.dumps(each).encode() for each in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


def _part(text: str, index: int) -> Claims:
    parts = text.split(".")
    if len(parts) != 3:
        raise BadToken("malformed token")
    try:
        padded = parts[index] + "=" * (-len(parts[index]) % 4)
        content = json.loads(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValueError, RecursionError):
        raise BadToken("malformed token") from None
    if not isinstance(content, dict):
        raise BadToken("malformed token")
    return content


def _only(keys: Mapping[str | None, WebKey]) -> WebKey | None:
    return next(iter(keys.values())) if len(keys) == 1 else None


def _time(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e11:
        raise BadToken(f"claim {name} is not a time")
    return float(value)


def _scopes(claim: object) -> frozenset[str]:
    if isinstance(claim, str):
        return frozenset(claim.split())
    if isinstance(claim, list):
        return frozenset(each for each in claim if isinstance(each, str))
    return frozenset()


def _jwt() -> ModuleType:
    try:
        import jwt
    except ImportError:
        raise UserError(
            "OAUTHBEARER needs the package PyJWT: pip install 'ottla[security]'"
        ) from None
    return jwt
