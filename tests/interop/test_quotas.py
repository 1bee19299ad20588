"""Clients of others hear of throttle times, and get what their quota allows."""

from __future__ import annotations

import time
from statistics import median
from typing import Any, Final

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


GREEDY: Final = 4
ROUNDS: Final = 40
SLOWER_MAX: Final = 5.0
SLOWER_MAX_S: Final = 0.05
"""What a busy machine may add. Throttled clients that held up others would add seconds."""


def typical_round_trip_s(producer: Producer) -> float:
    """The median time until one small record is acknowledged."""
    took = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        producer.produce("t", b"x")
        assert producer.flush(20) == 0
        took.append(time.monotonic() - began)
    return median(took)


@pytest.mark.spec("SEC-07")
def test_a_throttled_client_does_not_slow_others() -> None:
    told: list[Any] = []
    with Broker() as broker, ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topic("t", partitions=1)
        admin.alter_client_quotas({QuotaEntity(None, "slow"): {"producer_byte_rate": 1_000}}).all()
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        fast = Producer({**servers, "client.id": "fast", "linger.ms": 0})
        typical_round_trip_s(fast)
        alone_s = typical_round_trip_s(fast)
        config = {**servers, "client.id": "slow", "linger.ms": 0, "throttle_cb": told.append}
        greedy = [Producer(config) for _ in range(GREEDY)]
        for producer in greedy:
            producer.produce("t", bytes(100_000))
            producer.flush(5)
        for producer in greedy:
            for _ in range(100):
                producer.produce("t", bytes(1_000))
            producer.poll(0)
        beside_s = typical_round_trip_s(fast)
        assert [event for event in told if event.throttle_time > 0], "they are throttled"
        assert any(len(producer) for producer in greedy), "and still are"
        for producer in greedy:
            producer.purge()
    assert beside_s < SLOWER_MAX * alone_s + SLOWER_MAX_S, (beside_s, alone_s)
