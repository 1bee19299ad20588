"""Arrow rows to topics and partitions, and every failure heard of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.errors import KafkaError
from ottla.client.producer.sync import Producer
from ottla.model.errors import UserError
from ottla.spark.row_sender import RowSender
from ottla.spark.rows import SinkColumns
from ottla.testing import Broker
from tests.spark.committed_reader import committed

VALUE_ONLY = SinkColumns(0, None, None, None, None, None)


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as made:
        yield made


@pytest.fixture(scope="module")
def topics(broker: Broker) -> tuple[str, str]:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics(
            [
                NewTopic("sent-1", 3),
                NewTopic("sent-2", 1, configs={"max.message.bytes": "2000"}),
            ]
        ).all()
    return "sent-1", "sent-2"


def batch(**columns: list[Any]) -> pa.RecordBatch:
    types = {"partition": pa.int32(), "value": pa.string(), "topic": pa.string()}
    return pa.record_batch(
        {name: pa.array(values, types.get(name)) for name, values in columns.items()}
    )


def test_rows_go_to_the_topic_and_partition_they_name(
    broker: Broker, producer: Producer, topics: tuple[str, str]
) -> None:
    first, second = topics
    sender = RowSender(producer, SinkColumns(1, None, 0, None, 2, None), None)
    sender.send(
        batch(
            topic=[first, second, first, first],
            value=["a", "b", "c", "d"],
            partition=[2, None, 0, None],
        )
    )
    sender.finish()
    assert sender.records == 4
    found = {value: at for at, _, value in committed(broker.bootstrap_servers, first)}
    assert (found[b"a"], found[b"c"]) == (2, 0)
    assert b"d" in found
    assert [value for *_, value in committed(broker.bootstrap_servers, second)] == [b"b"]


def test_a_row_without_a_topic_is_refused(producer: Producer) -> None:
    sender = RowSender(producer, SinkColumns(1, None, 0, None, None, None), None)
    with pytest.raises(UserError, match="a row has no topic"):
        sender.send(batch(topic=["x", None], value=["a", "b"]))


def test_a_partition_that_is_not_there_is_refused(
    producer: Producer, topics: tuple[str, str]
) -> None:
    sender = RowSender(producer, SinkColumns(0, None, None, None, 1, None), topics[0])
    with pytest.raises(UserError, match="partition"):
        sender.send(batch(value=["a"], partition=[3]))


def test_a_row_the_broker_refuses_is_heard_of(producer: Producer, topics: tuple[str, str]) -> None:
    sender = RowSender(producer, VALUE_ONLY, topics[1])
    with pytest.raises(KafkaError):  # by whichever call comes after the broker's word
        sender.send(batch(value=["x" * 5_000]))
        sender.finish()
