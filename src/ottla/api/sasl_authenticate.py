"""SaslAuthenticate (36): a token of a mechanism. Here only when a client logs in again.

The first login of a connection is answered by `login.py`. A client that fails to log in again is
refused after a delay, and its connection is closed.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.login import Login, Outcome, refusal_fields
from ottla.model.errors import Disconnect, ErrorCode, KafkaError
from ottla.security.sasl.exchange import LoginFailed

KEY: Final = 36


async def sasl_authenticate(request: Request, ctx: Context) -> Fields:
    login = ctx.peer.login
    if not isinstance(login, Login):
        raise _illegal_state()
    outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def done(result: Outcome) -> None:
        if not outcome.done():
            outcome.set_result(result)

    if not login.authenticate(bytes(request.auth_bytes), done):
        raise _illegal_state()
    result = await outcome
    if isinstance(result, Disconnect):
        raise result
    if isinstance(result, LoginFailed):
        await asyncio.sleep(login.delay_ms / 1e3)
        asyncio.get_running_loop().call_soon(login.end, result)  # after the reply
        return refusal_fields(result)
    return result


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {"error_code": code, "error_message": message, "auth_bytes": b"", "session_lifetime": 0}


def _illegal_state() -> KafkaError:
    return KafkaError(
        ErrorCode.illegal_sasl_state,
        "SaslAuthenticate request received after successful authentication",
    )


API = Api(KEY, "SaslAuthenticate", range(0, 3), sasl_authenticate, refuse)
