"""The login on a new connection to a broker: SaslHandshake, then SaslAuthenticate.

Owns: the order of these requests and what their errors mean for the user. Never connects. Shared by
the clients and by brokers that call each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias

from ottla.model.errors import AuthenticationFailed, ErrorCode
from ottla.protocol import wire
from ottla.protocol.schema import KioMessage
from ottla.security.sasl.client import ClientLogin

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
MS: Final = timedelta(milliseconds=1)
STEPS_MAX: Final = 8

Ask: TypeAlias = Callable[[bytes], Awaitable[memoryview]]


class Requests(NamedTuple):
    """How requests are sent on one connection."""

    ask: Ask
    next_correlation_id: Callable[[], int]
    client_id: str
    version: Callable[[int], int | None]
    """The newest common version of an API; None: the broker does not support it."""
    address: str
    """For messages."""
    host: str
    """The broker's host name, as it was connected to."""

    async def send(self, key: int, fields: wire.Fields, *, at_least: int = 0) -> KioMessage:
        version = self.version(key)
        if version is None or version < at_least:
            raise AuthenticationFailed(
                f"{self.address}: the broker does not support logins by SaslAuthenticate"
            )
        frame = wire.encode_request(
            key, version, self.next_correlation_id(), self.client_id, fields
        )
        return wire.decode_reply(key, version, await self.ask(frame))


async def log_in(requests: Requests, login: ClientLogin) -> int:
    """Log in, or AuthenticationFailed. How long the session lasts, in ms; 0: for ever."""
    mechanism, address = login.mechanism, requests.address
    reply = await requests.send(SASL_HANDSHAKE, {"mechanism": mechanism}, at_least=1)
    if reply.error_code == ErrorCode.unsupported_sasl_mechanism:
        raise AuthenticationFailed(
            f"{address}: mechanism {mechanism} is not enabled on the broker; it offers "
            f"{', '.join(reply.mechanisms) or 'none'}"
        )
    if reply.error_code:
        raise AuthenticationFailed(f"{address}: login refused: {reply.error_code.name}")
    exchange = login.exchange(requests.host)
    token: bytes | None = await exchange.first()
    for _ in range(STEPS_MAX):
        reply = await requests.send(SASL_AUTHENTICATE, {"auth_bytes": token})
        if reply.error_code:
            reason = reply.error_message or reply.error_code.name
            raise AuthenticationFailed(f"{address}: login by {mechanism} failed: {reason}")
        token = await exchange.evaluate(bytes(reply.auth_bytes))
        if token is None:
            lifetime: timedelta = getattr(reply, "session_lifetime", timedelta(0))
            return lifetime // MS
    raise AuthenticationFailed(
        f"{address}: login by {mechanism} did not complete within {STEPS_MAX} messages"
    )
