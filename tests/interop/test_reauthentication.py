"""Sessions that end: clients log in again without their users noticing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Final

import pytest

import ottla
import ottla.aio
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.testing import Broker

pytestmark = [pytest.mark.spec("SEC-05"), pytest.mark.timeout(120)]

PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SESSION_MS: Final = 1_500
RUN_S: Final = 5.0
PAUSE_S: Final = 0.05
WAIT_S: Final = 30.0


@pytest.fixture(scope="module")
def config() -> Iterator[dict[str, str]]:
    settings = {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{PLAIN} required user_alice="secret";'
        ),
        "connections.max.reauth.ms": str(SESSION_MS),
    }
    with Broker(settings) as broker:
        login = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "secret",
        }
        with ottla.Admin(config=login) as admin:
            user = ScramUpsertion("alice", "secret", "SCRAM-SHA-256")
            admin.alter_user_scram_credentials([user]).all()
            admin.create_topic("t")
        yield {**login, "sasl.mechanism": "SCRAM-SHA-256"}


def sessions(log: pytest.LogCaptureFixture) -> int:
    return sum("User:alice" in record.getMessage() for record in log.records)


def test_our_clients_outlive_their_sessions(
    config: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "ottla.security.audit")
    reading = {**config, "group.id": "sync", "auto.offset.reset": "latest"}
    with (
        ottla.Producer(config=config) as producer,
        ottla.Consumer(config=reading) as consumer,
        ottla.Admin(config=config) as admin,
    ):
        consumer.subscribe(["t"])
        sent, received, ends_s = 0, 0, time.monotonic() + RUN_S
        while time.monotonic() < ends_s:
            producer.send("t", b"x").result(WAIT_S)
            sent += 1
            received += len(list(consumer.poll(PAUSE_S)))
            assert "t" in admin.list_topics()
        assert sent > 3
        assert received > 0
    # Three clients with at least two connections each would make six logins without an end.
    assert sessions(caplog) >= 3 * int(RUN_S * 1_000 / SESSION_MS)


def test_our_asynchronous_clients_do_as_well(config: dict[str, str]) -> None:
    async def story() -> None:
        reading = {**config, "group.id": "async", "auto.offset.reset": "earliest"}
        async with (
            ottla.aio.Producer(config=config) as producer,
            ottla.aio.Consumer(config=reading) as consumer,
        ):
            consumer.subscribe(["t"])
            received, ends_s = 0, time.monotonic() + RUN_S
            while time.monotonic() < ends_s:
                await (await producer.send("t", b"y"))
                received += len(list(await consumer.poll(PAUSE_S)))
            assert received > 0

    asyncio.run(story())


def test_librdkafka_logs_in_again_on_the_same_connection(config: dict[str, str]) -> None:
    from confluent_kafka import KafkaError, Producer

    problems: list[KafkaError] = []
    producer = Producer({**config, "error_cb": problems.append, "acks": "all"})
    failed: list[object] = []
    ends_s = time.monotonic() + RUN_S
    while time.monotonic() < ends_s:
        producer.produce("t", b"z", on_delivery=lambda error, _: failed.append(error))
        producer.flush(WAIT_S)
        time.sleep(PAUSE_S)
    assert set(failed) == {None}
    assert problems == []
