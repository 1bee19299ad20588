"""OAUTHBEARER (RFC 7628): a token instead of a password. Pure."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.model.errors import AuthenticationFailed
from ottla.security.sasl.exchange import LoginFailed, Step
from ottla.security.sasl.tokens import BadToken, Token

MECHANISM: Final = "OAUTHBEARER"
INVALID: Final = '{"status":"invalid_token"}'
_FIRST: Final = re.compile(
    r"n,(?:a=(?P<id>[^,]*))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)+)\x01", re.DOTALL
)
_BEARER: Final = re.compile(r"(?i)bearer +(?P<token>[-_~+/.=A-Za-z0-9]+)")


class BearerServer:
    """A refused token is first answered with its status, then, as the RFC wants, with failure."""

    blocks = False

    def __init__(self, check: Callable[[str], Token]) -> None:
        self._check = check
        self._refused: LoginFailed | None = None

    def evaluate(self, token: bytes) -> Step:
        if self._refused is not None:
            raise self._refused
        match = _FIRST.fullmatch(token.decode("utf-8", "replace"))
        if match is None:
            raise LoginFailed("Invalid OAUTHBEARER client first message")
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\1") if pair)
        bearer = _BEARER.fullmatch(pairs.get("auth", ""))
        if bearer is None:
            raise LoginFailed("Invalid OAUTHBEARER client first message: 'auth' not specified")
        try:
            verified = self._check(bearer["token"])
        except BadToken as error:
            self._refused = LoginFailed(INVALID, str(error))
            return Step(INVALID.encode())
        if match["id"] and match["id"] != verified.user:
            raise LoginFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from the token's principal name",
                user=verified.user,
            )
        return Step(b"", verified.user, verified.expires_ms)


class BearerClient:
    def __init__(self, token: Callable[[], Awaitable[str]]) -> None:
        self._token = token

    async def first(self) -> bytes:
        return f"n,,\1auth=Bearer {await self._token()}\1\1".encode()

    async def evaluate(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise AuthenticationFailed(
                "login by OAUTHBEARER failed: the broker refused the token: "
                f"{challenge.decode('utf-8', 'replace')}"
            )
        return None
