"""The most specific quota applies, in Kafka's order."""

from __future__ import annotations

import pytest

from ottla.model.errors import KafkaError
from ottla.security.quotas.entities import (
    DEFAULT,
    Client,
    Quota,
    QuotaEntity,
    applied_quota,
    connection_rate,
    parse_quotas,
    quota_text,
)

CLIENT = Client("alice", "app")
# From the most specific to the least, and who shares the quota.
LEVELS = [
    (QuotaEntity("alice", "app"), CLIENT),
    (QuotaEntity("alice", DEFAULT), CLIENT),
    (QuotaEntity("alice"), Client("alice", "")),
    (QuotaEntity(DEFAULT, "app"), CLIENT),
    (QuotaEntity(DEFAULT, DEFAULT), CLIENT),
    (QuotaEntity(DEFAULT), Client("alice", "")),
    (QuotaEntity(None, "app"), Client("", "app")),
    (QuotaEntity(None, DEFAULT), Client("", "app")),
]


@pytest.mark.spec("SEC-07", "SEC-10")
@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_most_specific_quota_applies(first: int) -> None:
    quotas = {
        entity: {"producer_byte_rate": float(place)}
        for place, (entity, _) in enumerate(LEVELS)
        if place >= first
    }
    applied = applied_quota(quotas, Quota.PRODUCE, CLIENT)
    assert applied == (first, LEVELS[first][1])


def test_a_more_specific_entity_without_this_quota_does_not_matter() -> None:
    quotas = {
        QuotaEntity("alice", "app"): {"consumer_byte_rate": 5.0},
        QuotaEntity("alice"): {"producer_byte_rate": 7.0},
    }
    applied = applied_quota(quotas, Quota.PRODUCE, CLIENT)
    assert applied == (7.0, Client("alice", ""))
    assert applied_quota(quotas, Quota.REQUEST, CLIENT) is None
    assert applied_quota(quotas, Quota.PRODUCE, Client("bob", "app")) is None


def test_an_address_without_a_rate_has_the_default_one() -> None:
    quotas = {
        QuotaEntity(ip="10.0.0.1"): {"connection_creation_rate": 5.0},
        QuotaEntity(ip=DEFAULT): {"connection_creation_rate": 9.0},
    }
    assert connection_rate(quotas, "10.0.0.1") == 5
    assert connection_rate(quotas, "10.0.0.2") == 9
    assert connection_rate({}, "10.0.0.2") is None


@pytest.mark.parametrize(
    ("entity", "key", "value", "text"),
    [
        (QuotaEntity("u"), "producer_byte_rate", 1024.0, "1024"),
        (QuotaEntity("u"), "consumer_byte_rate", 1024.0000001, "1024"),
        (QuotaEntity("u"), "request_percentage", 12.5, "12.5"),
        (QuotaEntity(None, "c"), "controller_mutation_rate", 2.0, "2.0"),
        (QuotaEntity(ip="10.0.0.1"), "connection_creation_rate", 3.0, "3"),
    ],
)
def test_quotas_are_stored_as_kafka_stores_them(
    entity: QuotaEntity, key: str, value: float, text: str
) -> None:
    assert quota_text(entity, key, value) == text
    assert parse_quotas(entity, {key: text, "SCRAM-SHA-256": "secret"}) == {
        key: pytest.approx(value)
    }


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        (QuotaEntity("u"), "connection_creation_rate", 5.0),
        (QuotaEntity(ip="10.0.0.1"), "producer_byte_rate", 5.0),
        (QuotaEntity("u"), "producer_byte_rate", 0.0),
        (QuotaEntity("u"), "producer_byte_rate", 1.5),
        (QuotaEntity("u"), "request_percentage", -1.0),
        (QuotaEntity("u"), "request_percentage", float("nan")),
        (QuotaEntity("u"), "color", 1.0),
    ],
)
def test_quotas_that_make_no_sense_are_refused(entity: QuotaEntity, key: str, value: float) -> None:
    with pytest.raises(KafkaError):
        quota_text(entity, key, value)
