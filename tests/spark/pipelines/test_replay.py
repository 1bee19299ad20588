"""Dead letters go back as they were, each once."""

from __future__ import annotations

import pytest

from ottla.client.consumer.sync import Consumer
from ottla.client.producer.sync import Producer
from ottla.spark.pipelines.dead_letters import REASON_HEADER, TOPIC_HEADER
from ottla.spark.pipelines.replay import REPLAYS_HEADER, origin, replay, sent_back
from ottla.testing import Broker

LETTER = ((TOPIC_HEADER, b"orders"), (REASON_HEADER, b"no page"), ("mine", b"1"))


@pytest.mark.spec("APP-16")
def test_a_letter_goes_back_without_what_made_it_one() -> None:
    assert origin(LETTER) == "orders"
    assert origin((("mine", b"1"),)) is None
    assert sent_back(LETTER) == [("mine", b"1"), (REPLAYS_HEADER, b"1")]
    assert sent_back(((REPLAYS_HEADER, b"1"), ("mine", b"1")))[-1] == (REPLAYS_HEADER, b"2")
    assert sent_back(((REPLAYS_HEADER, b"?"),)) == [(REPLAYS_HEADER, b"1")]


@pytest.mark.spec("APP-16", "APP-11")
def test_letters_are_replayed_once_and_those_of_another_reason_are_left() -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("dead", b"1", key=b"k", headers=list(LETTER))
            producer.send("dead", b"2", headers=[(TOPIC_HEADER, b"orders"), (REASON_HEADER, b"x")])
            producer.send("dead", b"3")
            producer.flush()
        first = replay(servers, "dead", reason="no page")
        again = replay(servers, "dead", reason="no page")
        assert (first.sent, first.left) == ({"orders": 1}, 2)
        assert (again.sent, again.left) == ({}, 0)
        consumer: Consumer[bytes, bytes] = Consumer(
            "orders", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest"
        )
        with consumer:
            (record,) = consumer.poll(10.0)
        assert (record.key, record.value) == (b"k", b"1")
        assert dict(record.headers) == {"mine": b"1", REPLAYS_HEADER: b"1"}
