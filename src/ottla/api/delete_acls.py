"""DeleteAcls (31): access rules that hold no longer."""

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
    read = [_read(asked) async for asked in in_slices(request.filters)]
    removed = iter(await store.remove([one for one in read if isinstance(one, Filter)]))
    results = [
        _result(ErrorCode.none, None, next(removed))
        if isinstance(one, Filter)
        else _result(one.code, one.message)
        for one in read
    ]
    return {"throttle_time": 0, "filter_results": results}


def _read(asked: Request) -> Filter | KafkaError:
    try:
        return read_filter(asked)
    except KafkaError as unsound:
        return unsound


def _result(code: ErrorCode, message: str | None, removed: Iterable[Rule] = ()) -> Fields:
    gone = [whole(rule) for rule in removed]
    return {"error_code": code, "error_message": message, "matching_acls": gone}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    results = [_result(code, message) for _ in request.filters]
    return {"throttle_time": 0, "filter_results": results}


API = Api(KEY, "DeleteAcls", range(1, 4), delete_acls, refuse, needs=on_cluster(Operation.ALTER))
