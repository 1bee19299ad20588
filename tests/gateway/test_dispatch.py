from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ottla.gateway.dispatch import answer
from ottla.gateway.http_messages import Request, request_of
from ottla.gateway.limits import Limits
from ottla.gateway.services import Services
from ottla.model.errors import AuthenticationFailed, ErrorCode, KafkaError, UserError


class FailingAdmin:
    """Fails as it is told, or never replies."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def brokers(self) -> list[int]:
        if self._error is not None:
            raise self._error
        await asyncio.sleep(3_000)
        return []


def services(error: Exception | None) -> Services:
    nothing: Any = None
    admin: Any = FailingAdmin(error)
    return Services(nothing, admin, nothing, Limits(), asyncio.Lock())


def brokers(accept: str = "*/*") -> Request:
    return request_of("GET", "/brokers", {"accept": accept}, b"")


@pytest.mark.parametrize(
    ("error", "status", "code", "message"),
    [
        (KafkaError(ErrorCode.cluster_authorization_failed, "no"), 403, 40301, "no"),
        (AuthenticationFailed("bad password"), 401, 40101, "bad password"),
        (KafkaError(ErrorCode.invalid_request, "a\nb"), 500, 50002, "a b"),
        (KafkaError(ErrorCode.leader_not_available), 500, 50003, "leader_not_available"),
        (ConnectionError("none of: a:9092"), 500, 50003, "none of: a:9092"),
        (UserError("seek first"), 409, 40903, "seek first"),
        (TimeoutError("no reply of broker 1"), 500, 50003, "no reply of broker 1"),
        (ValueError("secret"), 500, 500, "internal error: ValueError"),
    ],
)
async def test_every_error_is_a_code_and_a_message(
    error: Exception, status: int, code: int, message: str
) -> None:
    reply = await answer(brokers(), services(error))
    assert reply.status == status
    assert json.loads(reply.body) == {"error_code": code, "message": message}


async def test_a_request_has_a_limited_time() -> None:
    reply = await answer(brokers(), services(None))
    assert json.loads(reply.body) == {"error_code": 50003, "message": "no reply within 30000 ms"}


async def test_an_error_is_json_whatever_the_client_accepts() -> None:
    reply = await answer(brokers("text/html"), services(None))
    assert (reply.status, reply.content_type) == (406, "application/json")
