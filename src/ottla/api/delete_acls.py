"""DeleteAcls (31): deletes the ACLs that match filters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.api.acl_rules import read_filter, store_of, whole
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Filter, Operation, Rule

KEY: Final = 31


async def delete_acls(request: Request, ctx: Context) -> Fields:
    store = store_of(ctx)
    parsed = [_read(entry) async for entry in in_slices(request.filters)]
    removed = iter(
        await store.remove([filter_ for filter_ in parsed if isinstance(filter_, Filter)])
    )
    results = [
        _result(ErrorCode.none, None, next(removed))
        if isinstance(filter_, Filter)
        else _result(filter_.code, filter_.message)
        for filter_ in parsed
    ]
    return {"throttle_time": 0, "filter_results": results}


def _read(entry: Request) -> Filter | KafkaError:
    try:
        return read_filter(entry)
    except KafkaError as refusal:
        return refusal


def _result(code: ErrorCode, message: str | None, removed: Iterable[Rule] = ()) -> Fields:
    matching = [whole(rule) for rule in removed]
    return {"error_code": code, "error_message": message, "matching_acls": matching}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    results = [_result(code, message) for _ in request.filters]
    return {"throttle_time": 0, "filter_results": results}


API = Api(KEY, "DeleteAcls", range(1, 4), delete_acls, refuse, needs=on_cluster(Operation.ALTER))
