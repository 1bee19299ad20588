"""DeleteAcls (31): deletes the ACLs that match filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.api.acl_rules import read_filter, store_of, whole
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.delay.slices import Slices, in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol import wire
from ottla.security.acl import Filter, Operation

KEY: Final = 31


async def delete_acls(request: Request, ctx: Context) -> Fields:
    store = store_of(ctx)
    parsed = [_read(entry) async for entry in in_slices(request.filters)]
    removed = iter(
        await store.remove([filter_ for filter_ in parsed if isinstance(filter_, Filter)])
    )
    slices = Slices()
    results = []
    async for filter_ in slices.of(parsed):
        if isinstance(filter_, Filter):
            matching = [whole(rule) async for rule in slices.of(next(removed))]
            result = _result(ErrorCode.none, None, matching)
        else:
            result = _result(filter_.code, filter_.message, [])
        results.append(wire.encode_part(ctx.call, "filter_results", result))
    return {"throttle_time": 0, "filter_results": results}


def _read(entry: Request) -> Filter | KafkaError:
    try:
        return read_filter(entry)
    except KafkaError as refusal:
        return refusal


def _result(code: ErrorCode, message: str | None, matching: Sequence[Fields]) -> Fields:
    return {"error_code": code, "error_message": message, "matching_acls": matching}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    results = [_result(code, message, []) for _ in request.filters]
    return {"throttle_time": 0, "filter_results": results}


API = Api(KEY, "DeleteAcls", range(1, 4), delete_acls, refuse, needs=on_cluster(Operation.ALTER))
