"""Streams: limits, new partitions, lost records, progress that others can see."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark.sql.types import StructType

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.model.ids import TopicPartition as TP
from ottla.spark.offsets import JsonOffsets, from_json
from ottla.spark.stream_reader import StreamReader
from tests.spark.spark_cluster import Cluster


def reader_of(cluster: Cluster, topic: str, **given: str) -> StreamReader:
    needed = {"kafka.bootstrap.servers": cluster.servers, "subscribe": topic}
    return StreamReader({**needed, "startingOffsets": "earliest", **given}, StructType())


@pytest.mark.spec("APP-06", "APP-12")
def test_a_stream_has_everything_once_and_its_progress_is_a_groups(cluster: Cluster) -> None:
    topic, out = cluster.topic(), cluster.topic(1)
    values = [f"{at:04}" for at in range(300)]
    cluster.fill(topic, values)
    rows = cluster.stream(topic, maxOffsetsPerTrigger="100", **{"kafka.group.id": f"g-{topic}"})
    query = cluster.pour(rows.select("key", "value"), out, cluster.checkpoint())
    assert cluster.values(out) == values
    assert [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]] == [
        pytest.approx(100, abs=2)
    ] * 3 + [pytest.approx(3, abs=3)] * (len(query.recentProgress) - 3)
    with Admin(bootstrap_servers=cluster.servers) as admin:
        committed = admin.list_group_offsets(f"g-{topic}").all()
    assert sum(each.offset for each in committed.values()) == 300


def test_a_stream_goes_on_where_it_ended(cluster: Cluster) -> None:
    topic, out, checkpoint = cluster.topic(1), cluster.topic(1), cluster.checkpoint()
    for values in (["a", "b"], ["c"]):
        cluster.fill(topic, values)
        cluster.pour(cluster.stream(topic).select("value"), out, checkpoint)
    assert cluster.values(out) == ["a", "b", "c"]


def test_a_new_partition_is_read_from_its_beginning(cluster: Cluster) -> None:
    topic, out, checkpoint = cluster.topic(1), cluster.topic(1), cluster.checkpoint()
    cluster.fill(topic, ["a"])
    cluster.pour(cluster.stream(topic).select("value"), out, checkpoint)
    with Admin(bootstrap_servers=cluster.servers) as admin:
        admin.create_partitions({topic: 2}).all()
    cluster.fill(topic, ["b", "c"], partition=1)
    cluster.pour(cluster.stream(topic, startingOffsets="latest").select("value"), out, checkpoint)
    assert cluster.values(out) == ["a", "b", "c"]


def test_a_topic_made_anew_is_a_loss(cluster: Cluster) -> None:
    topic, out, checkpoint = cluster.topic(1), cluster.topic(1), cluster.checkpoint()
    cluster.fill(topic, ["a", "b", "c"])
    cluster.pour(cluster.stream(topic).select("value"), out, checkpoint)
    with Admin(bootstrap_servers=cluster.servers) as admin:
        admin.delete_topics([topic]).all()
        admin.create_topics([NewTopic(topic, 1)]).all()
    cluster.fill(topic, ["d"])
    with pytest.raises(PySparkException, match="the log now ends at 1: topic recreated"):
        cluster.pour(cluster.stream(topic).select("value"), out, checkpoint)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets: only for batch queries"),
        ({"startingOffsets": '{"t":{"0":1}}'}, "startingOffsets: expected every partition"),
    ],
)
def test_a_bad_option_of_a_stream_stops_it_before_its_first_batch(
    cluster: Cluster, given: dict[str, str], said: str
) -> None:
    topic = cluster.topic(1)
    with pytest.raises(PySparkException, match=said):
        cluster.pour(cluster.stream(topic, **given).select("value"), topic, cluster.checkpoint())


# the reader by itself, as Spark's driver calls it


def test_a_limit_is_known_by_what_spark_hands_back(cluster: Cluster, spark: SparkSession) -> None:
    topic = cluster.topic(1)
    assert isinstance(reader_of(cluster, topic).getDefaultReadLimit(), ReadAllAvailable)
    assert reader_of(cluster, topic, maxOffsetsPerTrigger="5").getDefaultReadLimit() == ReadMaxRows(
        5
    )
    assert reader_of(cluster, topic, maxBytesPerTrigger="5").getDefaultReadLimit() == ReadMaxBytes(
        5
    )
    assert reader_of(cluster, topic, minOffsetsPerTrigger="5").getDefaultReadLimit() == ReadMinRows(
        5
    )


def test_everything_means_everything_whatever_the_options_say(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.fill(topic, ["x"] * 20)
    reader = reader_of(cluster, topic, maxOffsetsPerTrigger="5")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable())[topic] == {"0": 20}
    assert reader.latestOffset(start, ReadMaxRows(5))[topic] == {"0": 5}
    assert reader.reportLatestOffset() == {topic: {"0": 20}}


def test_a_stream_begins_at_one_place_however_often_it_is_asked(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.fill(topic, ["x"] * 3)
    reader = reader_of(cluster, topic, startingOffsets="latest")
    start = reader.initialOffset()
    cluster.fill(topic, ["x"] * 4)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert reader.initialOffset() == start == {topic: {"0": 3}}
    restarted = reader_of(cluster, topic, startingOffsets="latest")  # during the first batch
    cluster.fill(topic, ["x"] * 5)
    [part] = restarted.partitions(restarted.initialOffset(), end)
    [each] = part.value
    assert (each.span.start, each.span.end) == (3, 7)
    assert restarted.latestOffset(end, ReadAllAvailable()) == {topic: {"0": 12}}


def test_a_limit_of_bytes_holds_a_batch_back(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.fill(topic, ["x" * 1_000] * 40)
    reader = reader_of(cluster, topic, maxBytesPerTrigger="20000")
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert 5 <= end[topic]["0"] <= 20


def test_a_minimum_waits_for_more_except_the_first_time(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.fill(topic, ["x"])
    reader = reader_of(cluster, topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert first[topic] == {"0": 1}
    cluster.fill(topic, ["x"] * 2)
    assert reader.latestOffset(first, limit) == first
    cluster.fill(topic, ["x"] * 3)
    assert reader.latestOffset(first, limit) == {topic: {"0": 6}}


def test_available_now_does_not_see_what_comes_later(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.fill(topic, ["x"] * 3)
    reader = reader_of(cluster, topic, maxOffsetsPerTrigger="2", minOffsetsPerTrigger="2")
    reader.prepareForTriggerAvailableNow()
    cluster.fill(topic, ["x"] * 3)
    limit = reader.getDefaultReadLimit()
    at: JsonOffsets = reader.initialOffset()
    seen = []
    while (end := reader.latestOffset(at, limit)) != at:
        at = end
        seen.append(at[topic]["0"])
    assert seen == [2, 3]


def test_spans_are_planned_and_an_empty_batch_has_none(cluster: Cluster) -> None:
    topic = cluster.topic(2)
    cluster.fill(topic, ["x"] * 10, partition=0)
    reader = reader_of(cluster, topic, maxRecordsPerPartition="4")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    spans = [[each.span for each in part.value] for part in reader.partitions(start, end)]
    assert [(span.start, span.end) for [span] in spans] == [(0, 3), (3, 6), (6, 10)]
    assert reader.partitions(end, end) == []


def test_small_partitions_are_one_task_and_are_read_whole(cluster: Cluster) -> None:
    topic, out = cluster.topic(3), cluster.topic(1)
    values = [f"{at:02}" for at in range(30)]
    cluster.fill(topic, values)
    for more, tasks in (({}, 1), ({"minRecordsPerPartition": "1"}, 3)):
        reader = reader_of(cluster, topic, **more)
        start = reader.initialOffset()
        parts = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
        assert len(parts) == tasks
        assert sum(each.span.size for part in parts for each in part.value) == 30
    cluster.pour(cluster.stream(topic).select("value"), out, cluster.checkpoint())
    assert cluster.values(out) == values


def test_the_same_offsets_are_the_same_text(cluster: Cluster) -> None:
    reader = reader_of(cluster, cluster.topic(12))
    start = reader.initialOffset()
    assert json.dumps(start) == json.dumps(reader.latestOffset(start, ReadAllAvailable()))


def test_partitions_are_remembered_as_long_as_told(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    reader = reader_of(cluster, topic, **{"partition.metadata.cache.ttl.ms": "3600000"})
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    with Admin(bootstrap_servers=cluster.servers) as admin:
        admin.create_partitions({topic: 2}).all()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert len(reader_of(cluster, topic).latestOffset(start, ReadAllAvailable())[topic]) == 2


def test_records_do_not_wait_until_the_client_may_ask_for_partitions_again(
    cluster: Cluster,
) -> None:
    topic = cluster.topic(1)
    an_hour = dict.fromkeys(("kafka.retry.backoff.ms", "kafka.retry.backoff.max.ms"), "3600000")
    reader = reader_of(cluster, topic, **an_hour)
    start = reader.initialOffset()
    cluster.fill(topic, ["a"])
    assert from_json(reader.latestOffset(start, ReadAllAvailable())) == {TP(topic, 0): 1}


def test_progress_that_cannot_be_committed_does_not_stop_the_query(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = cluster.topic(1)
    reader = reader_of(cluster, topic, **{"kafka.group.id": f"taken-{topic}"})
    member = Consumer({"bootstrap.servers": cluster.servers, "group.id": f"taken-{topic}"})
    joined: list[object] = []
    member.subscribe([topic], on_assign=lambda *_: joined.append(_))
    while not joined:
        member.poll(0.1)
    reader.commit({topic: {"0": 0}})
    member.close()
    assert "cannot commit offsets of group" in caplog.text


def test_deleted_partitions_are_a_loss_or_are_left_out(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    end = {topic: {"0": 5}}
    start = {topic: {"0": 0, "1": 3}}
    with pytest.raises(Exception, match=f"{topic}-1: the partition no longer exists"):
        reader_of(cluster, topic).partitions(start, end)
    spans = reader_of(cluster, topic, failOnDataLoss="false").partitions(start, end)
    assert [each.span.partition for part in spans for each in part.value] == [TP(topic, 0)]
