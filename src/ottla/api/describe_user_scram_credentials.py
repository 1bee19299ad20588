"""DescribeUserScramCredentials (50): who has SCRAM credentials, of which mechanism; no secret."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode
from ottla.security.acl import Operation
from ottla.security.sasl.scram import MECHANISM_NUMBERS, ScramCredentials

KEY: Final = 50


async def describe_user_scram_credentials(request: Request, ctx: Context) -> Fields:
    credentials = ctx.services.shared.configs.credentials
    named = Counter([item.name async for item in in_slices(request.users or ())])
    users = named or Counter(credentials.users())
    results = [_result(credentials, name, users[name]) async for name in in_slices(users)]
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "error_message": "",
        "results": results,
    }


def _result(credentials: ScramCredentials, user: str, times: int) -> Fields:
    of_user = credentials.of_user(user)
    code, message = ErrorCode.none, ""
    if times > 1:
        code = ErrorCode.duplicate_resource
        message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
    elif not of_user:
        code = ErrorCode.resource_not_found
        message = f"Attempt to describe a user credential that does not exist: {user}"
    infos = [
        {"mechanism": MECHANISM_NUMBERS[name], "iterations": iterations}
        for name, iterations in of_user.items()
    ]
    return {
        "user": user,
        "error_code": code,
        "error_message": message,
        "credential_infos": [] if code else infos,
    }


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code, "error_message": message, "results": []}


API = Api(
    KEY,
    "DescribeUserScramCredentials",
    range(0, 1),
    describe_user_scram_credentials,
    refuse,
    needs=on_cluster(Operation.DESCRIBE),
)
