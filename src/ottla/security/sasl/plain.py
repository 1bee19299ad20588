"""PLAIN: user and password as they are. Pure.

Owns: the form of the message and the comparison of passwords. Never hides them: a listener that
offers PLAIN should be encrypted.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from ottla.security.sasl.exchange import LoginFailed, Step

MECHANISM: Final = "PLAIN"
WRONG: Final = "Authentication failed: Invalid username or password"


class PlainServer:
    """Kafka's checks, in Kafka's words. `passwords` by user."""

    blocks = False

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def evaluate(self, token: bytes) -> Step:
        try:
            parts = token.decode("utf-8").split("\0")
        except UnicodeDecodeError:
            raise LoginFailed("Invalid SASL/PLAIN response: expected UTF-8") from None
        if len(parts) != 3:
            raise LoginFailed(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise LoginFailed("Authentication failed: username not specified")
        if not password:
            raise LoginFailed("Authentication failed: password not specified", user=user)
        expected = self._passwords.get(user)
        # Compared for unknown users as well: the time must not tell them from known ones.
        equal = hmac.compare_digest((expected or "\0").encode(), password.encode())
        if expected is None or not equal:
            reason = "unknown user" if expected is None else "wrong password"
            raise LoginFailed(WRONG, reason, user=user)
        if authorization_id and authorization_id != user:
            raise LoginFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username",
                user=user,
            )
        return Step(b"", user)


class PlainClient:
    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password

    async def first(self) -> bytes:
        return f"\0{self._user}\0{self._password}".encode()

    async def evaluate(self, challenge: bytes) -> bytes | None:
        return None
