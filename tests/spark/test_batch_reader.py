"""A batch as Spark's planner calls it, without Spark."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql import datasource
from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.model.errors import UserError
from ottla.spark.batch_reader import BatchReader, FilteringReader
from ottla.spark.options import batch_source
from ottla.testing import Broker

SCHEMA = StructType([StructField("value", BinaryType())])


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("planned", 2)]).all()
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for at in range(20):
            producer.send("planned", b"%d" % at, partition=at % 2)
    return "planned"


def reader(broker: Broker, topic: str, **given: str) -> FilteringReader:
    needed = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    return FilteringReader(batch_source({**needed, **given}), SCHEMA)


def planned(made: BatchReader) -> list[tuple[int, int, int]]:
    spans = [each.span for part in made.partitions() for each in part.value]
    return [(span.partition.partition, span.start, span.end) for span in spans]


def test_a_batch_is_planned_from_the_earliest_to_the_latest_offset(
    broker: Broker, topic: str
) -> None:
    assert planned(reader(broker, topic)) == [(0, 0, 10), (1, 0, 10)]


def test_conditions_narrow_the_plan_and_are_all_given_back(broker: Broker, topic: str) -> None:
    made = reader(broker, topic)
    filters: list[datasource.Filter] = [
        datasource.EqualTo(("partition",), 1),
        datasource.LessThan(("offset",), 4),
    ]
    assert made.pushFilters(filters) is filters
    assert planned(made) == [(1, 0, 5)]


def test_a_reader_without_filters_is_one_that_spark_accepts_when_they_are_off() -> None:
    assert BatchReader.pushFilters is datasource.DataSourceReader.pushFilters


def test_a_start_after_the_end_is_refused(broker: Broker, topic: str) -> None:
    made = reader(broker, topic, startingOffsets='{"planned":{"0":50,"1":0}}')
    with pytest.raises(UserError, match="startingOffsets: 50 for planned-0 is after endingOffsets"):
        made.partitions()


def test_a_reader_travels_and_reads(broker: Broker, topic: str) -> None:
    made = reader(broker, topic)
    first = made.partitions()[0]
    there = pickle.loads(pickle.dumps(made))
    [batch] = there.read(pickle.loads(pickle.dumps(first)))
    assert batch.column("value").to_pylist() == [b"%d" % at for at in range(0, 20, 2)]


def test_a_task_without_anything_to_read_gives_nothing(broker: Broker, topic: str) -> None:
    assert list(reader(broker, topic).read(datasource.InputPartition(None))) == []
