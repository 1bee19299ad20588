"""AlterClientQuotas (49): set or remove quotas of users, client ids and IP addresses."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from functools import partial
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.api.quota_entities import entity_of
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Operation
from ottla.security.quotas.entities import DEFAULT, QuotaEntity, quota_text
from ottla.shared_state.quota_store import Change

KEY: Final = 49
SLICE: Final = 20
"""Entries checked before the loop may run other tasks."""


async def alter_client_quotas(request: Request, ctx: Context) -> Fields:
    results: list[Fields] = []
    accepted: dict[QuotaEntity, Change] = {}
    async for entry in in_slices(request.entries, SLICE):
        code, message = ErrorCode.none, None
        try:
            entity = entity_of(entry.entity)
            _check_ip(entity)
            if entity in accepted:
                raise KafkaError(ErrorCode.invalid_request, "Duplicate client quota entity")
            accepted[entity] = partial(_apply, _changes(entity, entry.ops))
        except KafkaError as refusal:
            code, message = refusal.code, refusal.message
        results.append(_result(entry, code, message))
    store = ctx.services.shared.configs.quotas
    assert store is not None, "the quota store is built with the broker"
    if not request.validate_only:
        await store.change(accepted)
    return {"throttle_time": 0, "entries": results}


def _check_ip(entity: QuotaEntity) -> None:
    if entity.ip is None or entity.ip is DEFAULT:
        return
    try:
        ipaddress.ip_address(str(entity.ip))
    except ValueError:
        raise KafkaError(
            ErrorCode.invalid_request, f"{entity.ip} is not a valid IP or resolvable host."
        ) from None


def _changes(entity: QuotaEntity, ops: KioStruct) -> dict[str, str | None]:
    """The new text of each quota; None removes it."""
    changes: dict[str, str | None] = {}
    for op in ops:
        if op.key in changes:
            raise KafkaError(ErrorCode.invalid_request, f"Duplicate quota key {op.key}")
        value = 1.0 if op.remove else op.value
        if not math.isfinite(value):
            raise KafkaError(ErrorCode.invalid_request, f"Invalid value {value} for {op.key}")
        text = quota_text(entity, op.key, value)
        changes[op.key] = None if op.remove else text
    return changes


def _apply(changes: Mapping[str, str | None], settings: Mapping[str, str]) -> Mapping[str, str]:
    merged = {**settings, **changes}
    return {key: text for key, text in merged.items() if text is not None}


def _result(entry: KioStruct, code: ErrorCode, message: str | None) -> Fields:
    return {
        "error_code": code,
        "error_message": message,
        "entity": [
            {"entity_type": part.entity_type, "entity_name": part.entity_name}
            for part in entry.entity
        ],
    }


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "entries": [_result(entry, code, message) for entry in request.entries],
    }


API = Api(
    KEY,
    "AlterClientQuotas",
    range(0, 2),
    alter_client_quotas,
    refuse,
    needs=on_cluster(Operation.ALTER_CONFIGS),
)
