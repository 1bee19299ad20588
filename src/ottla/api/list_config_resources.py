"""ListConfigResources (74): the resources whose settings can be described."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.api.config_resources import ConfigKind
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Operation

KEY: Final = 74
FIRST_WITH_TYPES: Final = 1
SUPPORTED: Final = frozenset(ConfigKind)


async def list_config_resources(request: Request, ctx: Context) -> Fields:
    kinds = _requested_kinds(request, ctx)
    image = ctx.services.metadata.image
    names: dict[ConfigKind, list[str]] = {
        ConfigKind.TOPIC: sorted(image.topics),
        ConfigKind.BROKER: [str(id) for id in sorted(image.brokers)],
        ConfigKind.BROKER_LOGGER: [str(id) for id in sorted(image.brokers)],
        ConfigKind.GROUP: sorted(ctx.services.config.groups),
    }
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "config_resources": [
            {"resource_name": name, "resource_type": kind}
            for kind in sorted(kinds)
            for name in names.get(kind, ())
        ],
    }


def _requested_kinds(request: Request, ctx: Context) -> frozenset[ConfigKind]:
    """Version 0 lists client metrics only; later ones the requested kinds, or all."""
    if ctx.call.version < FIRST_WITH_TYPES:
        return frozenset({ConfigKind.CLIENT_METRICS})
    requested = frozenset(request.resource_types)
    if requested - SUPPORTED:
        unknown = ", ".join(str(kind) for kind in sorted(requested - SUPPORTED))
        raise KafkaError(
            ErrorCode.unsupported_version, f"Unsupported config resource types: {unknown}."
        )
    return frozenset(map(ConfigKind, requested)) or SUPPORTED


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code, "config_resources": []}


API = Api(
    KEY,
    "ListConfigResources",
    range(0, 2),
    list_config_resources,
    refuse,
    needs=on_cluster(Operation.DESCRIBE_CONFIGS),
)
