from __future__ import annotations

import pytest

from ottla.client.offsets import OffsetAndMetadata
from ottla.gateway import consumer_requests as requests
from ottla.gateway.consumer_requests import NewInstance, Read
from ottla.gateway.errors import HttpError
from ottla.gateway.json_fields import INT64_MAX, JsonObject
from ottla.gateway.media_types import Format
from ottla.model.ids import TopicPartition

MOST = Read(15_000, 8_000_000, 10_000, 0)


def test_everything_of_an_instance_may_be_chosen_and_nothing_must() -> None:
    assert requests.new_instance(JsonObject({})) == NewInstance()
    body = {
        "name": "a",
        "format": "JSON",
        "auto.offset.reset": "Earliest",
        "auto.commit.enable": "false",
        "fetch.min.bytes": -1,
        "consumer.request.timeout.ms": 5_000,
    }
    chosen = NewInstance("a", Format.JSON, "earliest", False, -1, 5_000)
    assert requests.new_instance(JsonObject(body)) == chosen
    assert requests.new_instance(JsonObject({"auto.commit.enable": True})).auto_commit is True
    assert requests.new_instance(JsonObject({"id": "b", "name": "a"})).name == "b"


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"format": "avro"}, 422, "format: expected binary or json, not 'avro'"),
        ({"auto.offset.reset": "first"}, 42204, "earliest or latest or none"),
        ({"auto.offset.reset": 1}, 42204, "a string, not a number"),
        ({"auto.commit.enable": "yes"}, 42204, "true or false"),
        ({"fetch.min.bytes": 10_000_001}, 42204, "fetch.min.bytes"),
        ({"consumer.request.timeout.ms": "x"}, 42204, "consumer.request.timeout.ms"),
        ({"name": "x" * 250}, 422, "name: expected at most 249"),
        ({"max.poll.records": 1}, 422, "no such field"),
    ],
)
def test_a_wrong_setting_is_named(body: object, code: int, words: str) -> None:
    with pytest.raises(HttpError, match=words) as refused:
        requests.new_instance(JsonObject(body))
    assert refused.value.code == code


def test_a_subscription_names_topics_or_a_pattern() -> None:
    assert requests.subscription(JsonObject({"topics": ["a", "b"]})).topics == ("a", "b")
    assert requests.subscription(JsonObject({"topic_pattern": "a.*"})).pattern == "a.*"
    both = {"topics": ["a"], "topic_pattern": "a"}
    bodies: list[object] = [{}, {"topics": []}, both, {"topics": [""]}]
    for body in bodies:
        with pytest.raises(HttpError, match="topics"):
            requests.subscription(JsonObject(body))


def test_a_committed_offset_is_the_one_after_the_record_that_was_handled() -> None:
    row = {"topic": "orders", "partition": 1, "offset": 20, "metadata": "m"}
    offsets = requests.handled_offsets(JsonObject({"offsets": [row]}))
    assert offsets == {TopicPartition("orders", 1): OffsetAndMetadata(21, "m")}


def test_positions_are_offsets_or_times() -> None:
    at = {"topic": "orders", "partition": 1}
    body = JsonObject(
        {
            "offsets": [{**at, "offset": 20}],
            "timestamps": [{**at, "partition": 2, "timestamp": "1970-01-01T01:00:01+01:00"}],
        }
    )
    offsets, times = requests.positions(body)
    assert offsets == {TopicPartition("orders", 1): 20}
    assert times == {TopicPartition("orders", 2): 1_000}
    for timestamp in ("yesterday", "2026-05-01T00:00:00", None, -1, True):
        rows = {"timestamps": [{**at, "timestamp": timestamp}]}
        with pytest.raises(HttpError, match=r"timestamps\[0\].timestamp: expected a time"):
            requests.positions(JsonObject(rows))


@pytest.mark.parametrize(
    "row",
    [
        {"partition": 0, "offset": 1},
        {"topic": "a", "offset": 1},
        {"topic": "a", "partition": 0},
        {"topic": "a", "partition": 0, "offset": -1},
        {"topic": "a", "partition": 0, "offset": 1, "leader": 0},
    ],
)
def test_an_offset_needs_topic_partition_and_number(row: object) -> None:
    with pytest.raises(HttpError, match=r"offsets\[0\]\."):
        requests.handled_offsets(JsonObject({"offsets": [row]}))
    with pytest.raises(HttpError, match=r"offsets\[0\]\."):
        requests.positions(JsonObject({"offsets": [row]}))


def test_a_read_has_the_limits_of_the_request_the_instance_and_the_gateway() -> None:
    instance = NewInstance(read_timeout_ms=2_000, fetch_min_bytes=-1)
    assert requests.read({}, instance, MOST) == Read(2_000, 8_000_000, 10_000, INT64_MAX)
    query = {"timeout": "60000", "max_bytes": "100"}
    assert requests.read(query, NewInstance(), MOST) == Read(15_000, 100, 10_000, 1)
    for text in ("soon", "1.5", "", "9" * 19):
        with pytest.raises(HttpError, match="timeout in the query"):
            requests.read({"timeout": text}, instance, MOST)
