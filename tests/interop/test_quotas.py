"""Clients of others hear of throttle times, and get what their quota allows."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Producer

import ottla
from ottla.security.quotas.entities import QuotaEntity
from ottla.testing import Broker


@pytest.mark.spec("SEC-07", "WIRE-14", "SEC-10")
def test_librdkafka_is_told_of_its_throttle_time_and_slowed_down() -> None:
    told: list[Any] = []
    with Broker() as broker, ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topic("t", partitions=1)
        admin.alter_client_quotas(
            {QuotaEntity(None, "slow"): {"producer_byte_rate": 200_000}}
        ).all()
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "client.id": "slow",
                "batch.size": 50_000,
                "linger.ms": 0,
                "throttle_cb": told.append,
            }
        )
        began = time.monotonic()
        for _ in range(270):
            producer.produce("t", bytes(10_000))
            producer.poll(0)
        assert producer.flush(60) == 0
        took_s = time.monotonic() - began
        producer.poll(0)
    # Ten seconds of the quota may be used at once, the other 700 kB take over three seconds.
    assert took_s > 1
    assert any(event.throttle_time > 0 for event in told)


@pytest.mark.spec("SEC-07")
def test_a_throttled_client_does_not_slow_others() -> None:
    with Broker() as broker, ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topic("t", partitions=1)
        admin.alter_client_quotas({QuotaEntity(None, "slow"): {"producer_byte_rate": 1_000}}).all()
        servers = broker.bootstrap_servers
        slow = Producer({"bootstrap.servers": servers, "client.id": "slow"})
        slow.produce("t", bytes(100_000))
        slow.flush(5)
        slow.produce("t", bytes(1_000))
        fast = Producer({"bootstrap.servers": servers, "client.id": "fast"})
        began = time.monotonic()
        for _ in range(20):
            fast.produce("t", bytes(1_000))
        assert fast.flush(10) == 0
        assert time.monotonic() - began < 5
        slow.purge()
