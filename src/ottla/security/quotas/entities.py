"""Users, client ids and IP addresses with quotas, and which of them applies to a client. Pure.

Owns Kafka's order: the quota of the most specific entity applies, alone. Owns the names of quotas,
and which of them an entity may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from ottla.model.errors import ErrorCode, KafkaError


class Default(Enum):
    """The entity that stands for all that have no quota of their own."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT
Name: TypeAlias = str | Default


class Quota(Enum):
    """The quotas of users and client ids, by Kafka's names."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"


CONNECTION_RATE: Final = "connection_creation_rate"
"""The only quota of an IP address."""
LONGS: Final = frozenset({Quota.PRODUCE.value, Quota.FETCH.value, CONNECTION_RATE})
_LEAST: Final[Mapping[str, float]] = {
    Quota.PRODUCE.value: 1,
    Quota.FETCH.value: 1,
    Quota.REQUEST.value: 0,
    Quota.MUTATION.value: 1,
    CONNECTION_RATE: 0,
}
_LARGEST: Final = 2.0**63
_ROUNDING: Final = 1e-6


class QuotaEntity(NamedTuple):
    """Whose quotas: a user, a client id, both, or an IP address; None where it is not named."""

    user: Name | None = None
    client_id: Name | None = None
    ip: Name | None = None

    @property
    def keys(self) -> frozenset[str]:
        """The quotas it may have."""
        if self.ip is not None:
            return frozenset({CONNECTION_RATE})
        return frozenset(quota.value for quota in Quota)


class Client(NamedTuple):
    """Who sends requests."""

    user: str
    client_id: str


Quotas: TypeAlias = Mapping[QuotaEntity, Mapping[str, float]]
"""The quotas of each entity that has some."""


class AppliedQuota(NamedTuple):
    """The quota that applies to a client, and those it shares it with."""

    limit: float
    sharers: Client
    """With an empty client id all clients of the user share one quota, and the reverse."""


def applied_quota(quotas: Quotas, quota: Quota, client: Client) -> AppliedQuota | None:
    """The quota of the most specific entity that has one; None if nothing limits the client."""
    for entity, sharers in _levels(client):
        limit = quotas.get(entity, {}).get(quota.value)
        if limit is not None:
            return AppliedQuota(limit, sharers)
    return None


def _levels(client: Client) -> Iterator[tuple[QuotaEntity, Client]]:
    """In Kafka's order. To a client without an id only the quotas of users apply."""
    user, client_id = client
    of_user = Client(user, "")
    for named in (user, DEFAULT):
        if client_id:
            yield QuotaEntity(named, client_id), client
            yield QuotaEntity(named, DEFAULT), client
        yield QuotaEntity(named), of_user
    if client_id:
        yield QuotaEntity(None, client_id), Client("", client_id)
        yield QuotaEntity(None, DEFAULT), Client("", client_id)


def connection_rate(quotas: Quotas, ip: str) -> float | None:
    """How many connections a second may come from an IP address."""
    for name in (ip, DEFAULT):
        limit = quotas.get(QuotaEntity(ip=name), {}).get(CONNECTION_RATE)
        if limit is not None:
            return limit
    return None


def quota_text(entity: QuotaEntity, key: str, value: float) -> str:
    """A quota as Kafka stores it; KafkaError if the entity cannot have it."""
    if key not in entity.keys:
        raise KafkaError(ErrorCode.invalid_request, f"Invalid configuration key {key}")
    if value <= 0:
        raise KafkaError(ErrorCode.invalid_request, f"Quota {key} must be greater than 0")
    if not _LEAST[key] <= value < _LARGEST:
        raise KafkaError(
            ErrorCode.invalid_request,
            f"Invalid value {value} for configuration {key}: must be at least {_LEAST[key]:g}",
        )
    if key not in LONGS:
        return str(float(value))
    if abs(value - round(value)) > _ROUNDING:
        raise KafkaError(ErrorCode.invalid_request, f"{key} cannot be a fractional value.")
    return str(round(value))


def parse_quotas(entity: QuotaEntity, overrides: Mapping[str, str]) -> dict[str, float]:
    """The quotas among the settings of an entity; ValueError if one is not a number."""
    return {key: float(text) for key, text in overrides.items() if key in entity.keys}
