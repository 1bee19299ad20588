"""kafka-configs.sh for users, clients and ips: quotas, as Kafka's tool sets and shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from ottla.cli.kafka.arguments import ToolError
from ottla.client.admin.quotas import ANY_NAME, QuotaFilter
from ottla.client.admin.sync import Admin
from ottla.security.quotas.entities import (
    CONNECTION_RATE,
    DEFAULT,
    Default,
    Name,
    Quota,
    QuotaEntity,
)

KINDS: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
KEYS: Final = frozenset({CONNECTION_RATE, *(quota.value for quota in Quota)})
_SHOWN: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}

Entities = Sequence[tuple[str, Name | None]]
"""Types with their names, in the order of the command line; None means every name."""


def describe(admin: Admin, entities: Entities) -> None:
    filter: QuotaFilter = {
        KINDS[kind]: ANY_NAME if name is None else name for kind, name in entities
    }
    for entity, values in admin.describe_client_quotas(filter, strict=True).items():
        configs = ", ".join(f"{key}={java_text(value)}" for key, value in sorted(values.items()))
        print(f"Quota configs for {_entity_text(entity)} are {configs}")


def java_text(value: float) -> str:
    """A number as Java's Double.toString writes it."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _entity_text(entity: QuotaEntity) -> str:
    parts = []
    for kind, name in zip(KINDS.values(), entity, strict=True):
        if name is not None:
            label = _SHOWN[kind]
            parts.append(f"the default {label}" if name is DEFAULT else f"{label} '{name}'")
    return ", ".join(parts)


def alter(admin: Admin, entities: Entities, changes: Mapping[str, str | None]) -> None:
    names: dict[str, str | Default] = {}
    for kind, name in entities:
        if name is None:
            raise ToolError("An entity name or default entity must be specified with --alter")
        names[kind] = name
    entity = QuotaEntity(*(names.get(kind) for kind in KINDS))
    values = {key: None if text is None else _number(key, text) for key, text in changes.items()}
    admin.alter_client_quotas({entity: values}).all()
    kind, first = entities[0]
    if first is DEFAULT:
        print(f"Completed updating default config for {kind} in the cluster.")
    else:
        print(f"Completed updating config for {kind.removesuffix('s')} {first}.")


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ToolError(f"Cannot parse quota configuration value for {key}: {text}") from None
