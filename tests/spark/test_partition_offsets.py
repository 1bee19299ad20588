"""What a driver asks before it plans, of a live broker."""

from __future__ import annotations

import pytest

from ottla.client.producer.sync import Producer
from ottla.config.client import ConsumerConfig
from ottla.model.clock import SystemClock
from ottla.model.ids import TopicPartition
from ottla.spark import options, partition_offsets
from ottla.spark.connection import Connection, shared_connection
from ottla.testing import Broker

TP = TopicPartition("later", 0)


def asked(broker: Broker, **more: str) -> tuple[options.SourceOptions, Connection]:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "later", **more}
    made = options.stream_source(given)
    return made, shared_connection(ConsumerConfig, made.client)


@pytest.mark.spec("APP-15")
def test_with_a_delay_a_stream_ends_before_the_first_record_that_is_too_young() -> None:
    with Broker() as broker:
        now_ms = SystemClock().wall_ms()
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for age_ms in (60_000, 30_000, 10_000, 40_000):
                producer.send("later", b"x", timestamp_ms=now_ms - age_ms)
            producer.flush()

        def end(**more: str) -> int:
            given, connection = asked(broker, **more)
            found = connection.ask(lambda one: partition_offsets.latest(one, given, [TP], now_ms))
            return found[TP]

        assert end() == 4
        assert end(**{"ottla.delay": "20s"}) == 2, "the fourth waits behind the third"
        assert end(**{"ottla.delay": "10s"}) == 2
        assert end(**{"ottla.delay": "9s"}) == 4
        assert end(**{"ottla.delay": '{"later": "20s"}'}) == 2
        assert end(**{"ottla.delay": "2m"}) == 0
