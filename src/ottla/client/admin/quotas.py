"""Quotas of users, client ids and IP addresses: describing, setting and removing them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, error_of
from ottla.client.cluster import Target, To
from ottla.client.errors import ErrorCode, UserError, refusal
from ottla.protocol.schema import KioStruct
from ottla.protocol.wire import Fields
from ottla.security.quotas.entities import DEFAULT, Default, Name, QuotaEntity

TYPES: Final = ("user", "client-id", "ip")


class AnyName(Enum):
    """In a filter: every name, and the default."""

    ANY = "any"


ANY_NAME: Final = AnyName.ANY
QuotaFilter: TypeAlias = Mapping[str, str | Default | AnyName]
"""For each of `user`, `client-id`, `ip` that an entity must have, its name."""
QuotaChanges: TypeAlias = Mapping[QuotaEntity, Mapping[str, float | None]]
"""New quotas by Kafka's names, such as `producer_byte_rate`; None removes one."""


async def describe_client_quotas(
    session: Session, filter: QuotaFilter | None = None, *, strict: bool = False
) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of all entities that a filter matches; a strict one allows no other types."""
    components = [_component(kind, name) for kind, name in (filter or {}).items()]
    fields: Fields = {"components": components, "strict": strict}
    reply = await session.once(Target.ANY, api_keys.DESCRIBE_CLIENT_QUOTAS, fields)
    if reply.error_code is not ErrorCode.none:
        raise refusal(reply.error_code, reply.error_message)
    return {
        _entity(found.entity): {value.key: value.value for value in found.values}
        for found in reply.entries or ()
    }


async def alter_client_quotas(
    session: Session, changes: QuotaChanges, *, validate_only: bool = False
) -> Outcomes[QuotaEntity, None]:
    """Set and remove quotas; the outcome for each entity."""

    async def ask(node: To, entities: list[QuotaEntity]) -> Answers[QuotaEntity, None]:
        fields = {
            "entries": [_entry(entity, changes[entity]) for entity in entities],
            "validate_only": validate_only,
        }
        reply = await session.ask(node, api_keys.ALTER_CLIENT_QUOTAS, fields)
        return {_entity(row.entity): error_of(row) for row in reply.entries}

    return await session.for_each(changes, session.controller, ask)


def _component(kind: str, name: str | Default | AnyName) -> Fields:
    if kind not in TYPES:
        raise UserError(f"quota filter {kind!r}: expected one of {', '.join(TYPES)}")
    if name is ANY_NAME:
        return {"entity_type": kind, "match_type": 2, "match": None}
    is_default = name is DEFAULT
    match = None if is_default else name
    return {"entity_type": kind, "match_type": 1 if is_default else 0, "match": match}


def _entry(entity: QuotaEntity, quotas: Mapping[str, float | None]) -> Fields:
    named = zip(TYPES, entity, strict=True)
    return {
        "entity": [
            {"entity_type": kind, "entity_name": None if name is DEFAULT else name}
            for kind, name in named
            if name is not None
        ],
        "ops": [
            {"key": key, "value": 0.0 if value is None else float(value), "remove": value is None}
            for key, value in quotas.items()
        ],
    }


def _entity(parts: KioStruct) -> QuotaEntity:
    names: dict[str, Name] = {
        part.entity_type: DEFAULT if part.entity_name is None else part.entity_name
        for part in parts
    }
    return QuotaEntity(*(names.get(kind) for kind in TYPES))
