"""DescribeAcls (29): the ACLs that match a filter."""

from __future__ import annotations

from typing import Final

from ottla.api.acl_rules import read_filter, resources, store_of
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode
from ottla.security.acl import Operation, Rules

KEY: Final = 29


async def describe_acls(request: Request, ctx: Context) -> Fields:
    store_of(ctx, "No Authorizer is configured on the broker")
    rules = ctx.services.authorizer.rules or Rules()
    filter_ = read_filter(request)
    matching = await rules.matching(filter_, Slices())
    return {**_head(ErrorCode.none, None), "resources": await resources(matching)}


def _head(code: ErrorCode, message: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code, "error_message": message}


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {**_head(code, message), "resources": []}


API = Api(
    KEY, "DescribeAcls", range(1, 4), describe_acls, refuse, needs=on_cluster(Operation.DESCRIBE)
)
