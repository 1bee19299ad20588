"""Groups on a broker that is killed while they work."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cluster.load import create_topic, produce
from tests.cluster.process import BrokerProcess

TOPIC = "grouped"
RECORDS = 60


def member(address: str, protocol: str = "classic") -> Consumer:
    session = {} if protocol == "consumer" else {"session.timeout.ms": 6_000}
    consumer = Consumer(
        {
            "group.protocol": protocol,
            "bootstrap.servers": address,
            "group.id": "survivors",
            "group.instance.id": "one",  # its successor need not wait for its session to end
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
            **session,
        }
    )
    consumer.subscribe([TOPIC])
    return consumer


def read(consumer: Consumer, count: int) -> list[int]:
    """The offsets of the next records."""
    offsets: list[int] = []
    while len(offsets) < count:
        messages = consumer.consume(count - len(offsets), 20.0)
        assert messages, "no records came in time"
        offsets += [message.offset() or 0 for message in messages if not message.error()]
    return offsets


@pytest.mark.spec("GRP-59", "GRP-75", "GRP-77", "GRP-48")
@pytest.mark.timeout(120)
def test_a_group_goes_on_where_it_committed_each_time_the_broker_is_killed(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path, settings) as broker:
        create_topic(broker.address, TOPIC)
        produce(broker.address, TOPIC, [str(number) for number in range(RECORDS)])
        for life in range(4):
            consumer = member(broker.address)
            assert read(consumer, 10) == list(range(life * 10, life * 10 + 10))
            last = TopicPartition(TOPIC, 0, life * 10 + 10)
            consumer.commit(offsets=[last], asynchronous=False)
            broker.kill()
            consumer.close()
            broker.start()
        assert broker.terminate() == 0
    assert "Traceback" not in broker.said_ever


@pytest.mark.spec("GRP-59", "GRP-75", "GRP-77")
@pytest.mark.timeout(120)
def test_members_of_the_consumer_protocol_go_on_each_time_the_broker_is_killed(
    tmp_path: Path,
) -> None:
    settings = {
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "200",
    }
    with BrokerProcess(tmp_path, settings) as broker:
        create_topic(broker.address, TOPIC)
        produce(broker.address, TOPIC, [str(number) for number in range(RECORDS)])
        consumer = member(broker.address, protocol="consumer")
        for life in range(4):
            if life:
                broker.kill()
                broker.start()
            assert read(consumer, 10) == list(range(life * 10, life * 10 + 10))
            last = TopicPartition(TOPIC, 0, life * 10 + 10)
            consumer.commit(offsets=[last], asynchronous=False)
        consumer.close()
        consumer = member(broker.address, protocol="consumer")
        assert read(consumer, 10) == list(range(40, 50))
        consumer.close()
        assert broker.terminate() == 0
    assert "Traceback" not in broker.said_ever
