"""Entities with quotas, as DescribeClientQuotas and AlterClientQuotas name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.api.api import Fields
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.schema import KioStruct
from ottla.security.quotas.entities import DEFAULT, Name, QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)


def check_type(entity_type: str, seen: Iterable[str], what: str) -> None:
    """KafkaError for a type that is empty or repeated."""
    if not entity_type:
        raise KafkaError(ErrorCode.invalid_request, "Invalid empty entity type.")
    if entity_type in seen:
        raise KafkaError(ErrorCode.invalid_request, f"Duplicate {entity_type} {what} entity type")


def entity_of(parts: Iterable[KioStruct]) -> QuotaEntity:
    """The entity that a request names; a null name is the default entity."""
    names: dict[str, Name] = {}
    for part in parts:
        check_type(part.entity_type, names, "client quota")
        if part.entity_type not in TYPES:
            raise KafkaError(
                ErrorCode.invalid_request,
                f"Unhandled client quota entity type: {part.entity_type}",
            )
        if part.entity_name == "":
            raise KafkaError(ErrorCode.invalid_request, f"Empty {part.entity_type} not supported")
        names[part.entity_type] = DEFAULT if part.entity_name is None else part.entity_name
    if not names:
        raise KafkaError(ErrorCode.invalid_request, "Invalid empty client quota entity")
    if IP in names and len(names) > 1:
        raise KafkaError(
            ErrorCode.invalid_request,
            "Invalid quota entity combination, IP entity should not be used with user or clientId "
            "entity.",
        )
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID), names.get(IP))


def entity_fields(entity: QuotaEntity) -> list[Fields]:
    """The entity in a reply."""
    return [
        {"entity_type": kind, "entity_name": None if name is DEFAULT else name}
        for kind, name in named(entity)
    ]


def named(entity: QuotaEntity) -> list[tuple[str, Name]]:
    """The types of an entity, each with its name."""
    pairs = zip((USER, CLIENT_ID, IP), entity, strict=True)
    return [(kind, name) for kind, name in pairs if name is not None]
