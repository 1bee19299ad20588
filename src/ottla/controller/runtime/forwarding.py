"""Requests of this broker and of its clients to the active controller, wherever it is.

Owns the envelope of a client's request (its bytes, principal and address) and the retries: while no
controller is known, or the one that was asked is no longer active or cannot be reached, until the
request's timeout. The receiver of an envelope answers it itself or refuses: it is never forwarded
again.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Final, NamedTuple, Protocol

from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol import principals
from ottla.protocol.schema import KioMessage
from ottla.protocol.wire import Fields

ENVELOPE: Final = 58
RETRY_S: Final = 0.1
GRACE_MS: Final = 2_000
"""The controller itself answers at the request's timeout: wait a little longer for that."""
UNREACHABLE: Final = "The active controller cannot be reached."


class ActiveController(Protocol):
    """`ControllerChannel`: KafkaError if no controller is known, OSError if it is unreachable."""

    async def ask(self, key: int, fields: Fields, timeout_ms: int, purpose: str) -> KioMessage: ...


class ForwardedRequest(NamedTuple):
    frame: bytes
    """As it came from the client, without the size."""
    principal: str
    address: str


class Forwarder:
    PURPOSE: Final = "forwarding"

    def __init__(self, controller: ActiveController, clock: Clock) -> None:
        self._controller = controller
        self._clock = clock

    async def forward(self, request: ForwardedRequest, timeout_ms: int) -> bytes:
        """The controller's reply for the client, without the size."""
        fields = {
            "request_data": request.frame,
            "request_principal": principals.encode(request.principal),
            "client_host_address": ip_address(request.address).packed,
        }
        reply = await self.ask(ENVELOPE, fields, timeout_ms)
        if reply.error_code is not ErrorCode.none:
            raise KafkaError(reply.error_code)
        data: bytes = reply.response_data or b""
        return data

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> KioMessage:
        """A reply of the active controller. KafkaError if there is none before the timeout."""
        deadline = MonoMs(self._clock.mono_ms() + timeout_ms + GRACE_MS)
        refusal = KafkaError(ErrorCode.request_timed_out, UNREACHABLE)
        while (left_ms := deadline - self._clock.mono_ms()) > 0:
            try:
                reply = await self._controller.ask(key, fields, left_ms, self.PURPOSE)
                if getattr(reply, "error_code", None) is not ErrorCode.not_controller:
                    return reply
                refusal = KafkaError(ErrorCode.not_controller)
            except KafkaError as error:
                if error.code is not ErrorCode.not_controller:
                    raise
                refusal = error
            except OSError:
                refusal = KafkaError(ErrorCode.request_timed_out, UNREACHABLE)
            await asyncio.sleep(RETRY_S)
        raise refusal
