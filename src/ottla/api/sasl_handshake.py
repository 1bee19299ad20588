"""SaslHandshake (17): chooses a mechanism. Here only when a client logs in again.

The first login of a connection is answered by `login.py`.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.login import Login
from ottla.model.errors import ErrorCode, KafkaError

KEY: Final = 17


async def sasl_handshake(request: Request, ctx: Context) -> Fields:
    login = ctx.peer.login
    if not isinstance(login, Login) or not login.may_repeat:
        raise KafkaError(ErrorCode.illegal_sasl_state)
    return login.handshake(request.mechanism)


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {"error_code": code, "mechanisms": []}


API = Api(KEY, "SaslHandshake", range(0, 2), sasl_handshake, refuse)
