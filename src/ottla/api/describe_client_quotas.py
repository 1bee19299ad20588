"""DescribeClientQuotas (48): the quotas of the entities that a filter selects."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.api.quota_entities import IP, TYPES, check_type, entity_fields, named
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Operation
from ottla.security.quotas.entities import DEFAULT, Name, QuotaEntity

KEY: Final = 48
EXACT: Final = 0
DEFAULT_NAME: Final = 1
ANY_NAME: Final = 2


async def describe_client_quotas(request: Request, ctx: Context) -> Fields:
    filters = _filters(request.components)
    entries = [
        {
            "entity": entity_fields(entity),
            "values": [{"key": key, "value": value} for key, value in sorted(quotas.items())],
        }
        async for entity, quotas in in_slices(ctx.services.shared.quotas.quotas.items())
        if _matches(entity, filters, strict=request.strict)
    ]
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "error_message": "",
        "entries": entries,
    }


def _filters(components: KioStruct) -> dict[str, tuple[int, str | None]]:
    filters: dict[str, tuple[int, str | None]] = {}
    for component in components:
        check_type(component.entity_type, filters, "filter component")
        if component.entity_type not in TYPES:
            raise KafkaError(
                ErrorCode.unsupported_version, f"Unsupported entity type {component.entity_type}"
            )
        if component.match_type not in (EXACT, DEFAULT_NAME, ANY_NAME):
            raise KafkaError(
                ErrorCode.invalid_request, f"Unknown match type {component.match_type}"
            )
        if component.match_type == EXACT and component.match is None:
            raise KafkaError(ErrorCode.invalid_request, "Request specified EXACT but no match")
        filters[component.entity_type] = (component.match_type, component.match)
    if IP in filters and len(filters) > 1:
        raise KafkaError(
            ErrorCode.invalid_request,
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component.",
        )
    return filters


def _matches(
    entity: QuotaEntity, filters: dict[str, tuple[int, str | None]], *, strict: bool
) -> bool:
    """Whether each filter matches; a strict one allows no other types."""
    names = dict(named(entity))
    if strict and names.keys() != filters.keys():
        return False
    return all(
        kind in names and _name_matches(names[kind], *wanted) for kind, wanted in filters.items()
    )


def _name_matches(name: Name, match_type: int, match: str | None) -> bool:
    if match_type == ANY_NAME:
        return True
    return name is DEFAULT if match_type == DEFAULT_NAME else name == match


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code, "error_message": message, "entries": None}


API = Api(
    KEY,
    "DescribeClientQuotas",
    range(0, 2),
    describe_client_quotas,
    refuse,
    needs=on_cluster(Operation.DESCRIBE_CONFIGS),
)
