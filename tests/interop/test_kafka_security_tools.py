"""Kafka's own kafka-configs for users, clients and addresses, in one virtual machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

import ottla
from ottla.security.quotas.entities import DEFAULT, QuotaEntity
from ottla.testing import Broker
from tests.interop.tools_in_one import KafkaTools
from tools import kafka_cache

pytestmark = [pytest.mark.spec("SEC-05", "SEC-07"), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def tools(broker: Broker) -> Iterator[KafkaTools]:
    try:
        running = KafkaTools(broker.bootstrap_servers)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    with closing(running):
        yield running


def test_credentials_of_users_are_set_described_and_deleted(
    broker: Broker, tools: KafkaTools
) -> None:
    user = ("--entity-type", "users", "--entity-name", "alice")
    change = ("kafka-configs", "--alter", *user)
    tools.done(*change, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=planted]")
    described = tools.done("kafka-configs", "--describe", *user)
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "planted" not in described
    with ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        [found] = admin.describe_user_scram_credentials(["alice"]).all().values()
        assert "SCRAM-SHA-256" in str(found)
    tools.done(*change, "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM" not in tools.done("kafka-configs", "--describe", *user)


@pytest.mark.parametrize(
    ("words", "entity", "quota"),
    [
        ("--entity-type users --entity-name bob", QuotaEntity("bob", None), "producer_byte_rate"),
        ("--entity-type clients --entity-name c", QuotaEntity(None, "c"), "consumer_byte_rate"),
        (
            "--entity-type users --entity-name bob --entity-type clients --entity-default",
            QuotaEntity("bob", DEFAULT),
            "request_percentage",
        ),
        (
            "--entity-type ips --entity-name 127.0.0.9",
            QuotaEntity(ip="127.0.0.9"),
            "connection_creation_rate",
        ),
    ],
)
def test_quotas_are_set_described_and_deleted(
    broker: Broker, tools: KafkaTools, words: str, entity: QuotaEntity, quota: str
) -> None:
    which = words.split()
    tools.done("kafka-configs", "--alter", *which, "--add-config", f"{quota}=25")
    with ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        assert admin.describe_client_quotas()[entity] == {quota: 25.0}
    assert f"{quota}=25" in tools.done("kafka-configs", "--describe", *which)
    tools.done("kafka-configs", "--alter", *which, "--delete-config", quota)
    assert quota not in tools.done("kafka-configs", "--describe", *which)
