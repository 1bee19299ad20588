"""CreateAcls (30): adds ACLs."""

from __future__ import annotations

from typing import Final

from ottla.api.acl_rules import read_rule, store_of
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Operation, Rule

KEY: Final = 30


async def create_acls(request: Request, ctx: Context) -> Fields:
    store = store_of(ctx)
    rules: list[Rule] = []
    results: list[Fields] = []
    async for creation in in_slices(request.creations):
        try:
            rules.append(read_rule(creation))
            results.append(_result(ErrorCode.none, None))
        except KafkaError as refusal:
            results.append(_result(refusal.code, refusal.message))
    await store.add(rules)
    return {"throttle_time": 0, "results": results}


def _result(code: ErrorCode, message: str | None) -> Fields:
    return {"error_code": code, "error_message": message}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    return {"throttle_time": 0, "results": [_result(code, message) for _ in request.creations]}


API = Api(KEY, "CreateAcls", range(1, 4), create_acls, refuse, needs=on_cluster(Operation.ALTER))
