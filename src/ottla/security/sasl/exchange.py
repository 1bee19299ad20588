"""What a mechanism is: tokens in, tokens out, until the client is known or refused.

Owns: the interface of a mechanism on both sides. Never sends a token.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from ottla.model.clock import WallMs

SENTENCE: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
)
"""Kafka's words, followed by the mechanism; the same for an unknown user and a wrong password."""


class LoginFailed(Exception):
    """The client is refused. The text is sent to it; `reason` is for the audit log only."""

    def __init__(self, text: str, reason: str = "", *, user: str = "") -> None:
        super().__init__(text)
        self.reason = reason or text
        self.user = user


class Step(NamedTuple):
    """The token to send; with a user, the client is authenticated."""

    token: bytes
    user: str | None = None
    expires_ms: WallMs | None = None
    """When the credential expires, on the clock for stamping."""
    by_token: bool = False
    """Whether the client logged in with a delegation token of this user."""


class ServerExchange(Protocol):
    """One login, on the broker's side."""

    @property
    def blocks(self) -> bool:
        """Whether `evaluate` may take long, and has to run on a thread."""

    def evaluate(self, token: bytes) -> Step:
        """The next step, or LoginFailed. Disconnect: the client may try again."""


class ClientExchange(Protocol):
    """One login, on the client's side."""

    async def first(self) -> bytes: ...

    async def evaluate(self, challenge: bytes) -> bytes | None:
        """The next token; None: the login is complete. AuthenticationFailed: do not trust it."""
