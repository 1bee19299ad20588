"""Metrics of quotas, for each entity while it is used: its rate and its last throttle time.

Owns names and labels. An entity has no metric once its usage is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ottla.model.clock import MonoMs
from ottla.model.metrics import Labels, Registry
from ottla.security.quotas.client_quotas import ClientQuotas, Usage
from ottla.security.quotas.entities import Quota

_RATES: Final[Mapping[Quota, tuple[str, str]]] = {
    Quota.PRODUCE: ("kafka_server_produce_byte_rate", "Bytes a second produced under a quota."),
    Quota.FETCH: ("kafka_server_fetch_byte_rate", "Bytes a second fetched under a quota."),
    Quota.REQUEST: (
        "kafka_server_request_request_time",
        "Percent of the event loop used under a quota.",
    ),
}
_THROTTLE_TIMES: Final[Mapping[Quota, str]] = {
    Quota.PRODUCE: "kafka_server_produce_throttle_time",
    Quota.FETCH: "kafka_server_fetch_throttle_time",
    Quota.REQUEST: "kafka_server_request_throttle_time",
    Quota.MUTATION: "kafka_server_controllermutation_throttle_time",
}


def register_metrics(
    quotas: ClientQuotas, registry: Registry, now_ms: Callable[[], MonoMs]
) -> None:
    for quota, (name, doc) in _RATES.items():
        registry.series(name, doc, _rates(quotas, quota, now_ms))
    for quota, name in _THROTTLE_TIMES.items():
        doc = "Milliseconds of the last delay by a quota."
        registry.series(name, doc, _delays(quotas, quota, now_ms))


def _rates(
    quotas: ClientQuotas, quota: Quota, now_ms: Callable[[], MonoMs]
) -> Callable[[], Iterator[tuple[Labels, float]]]:
    def read() -> Iterator[tuple[Labels, float]]:
        now = now_ms()
        return (
            (labels, used.rate.rate(now)) for labels, used in _labelled_usage(quotas, quota, now)
        )

    return read


def _delays(
    quotas: ClientQuotas, quota: Quota, now_ms: Callable[[], MonoMs]
) -> Callable[[], Iterator[tuple[Labels, float]]]:
    def read() -> Iterator[tuple[Labels, float]]:
        return (
            (labels, used.delay_ms) for labels, used in _labelled_usage(quotas, quota, now_ms())
        )

    return read


def _labelled_usage(
    quotas: ClientQuotas, quota: Quota, now_ms: MonoMs
) -> list[tuple[Labels, Usage]]:
    quotas.expire(now_ms)
    return [
        ((("client_id", client.client_id), ("user", client.user)), used)
        for client, used in quotas.usage(quota, now_ms)
    ]
