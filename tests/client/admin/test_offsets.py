from __future__ import annotations

import pytest

import ottla
from ottla import ErrorCode, KafkaError, TopicPartition
from ottla.client.admin import OffsetSpec
from ottla.client.admin.offsets import by_topic, indexes_by_topic
from ottla.testing import Broker
from tests.raw_requests import NOW_MS, Line, batch, produced


@pytest.fixture
def filled(admin_broker: Broker, topic: str) -> TopicPartition:
    """A partition with five records, a second apart."""
    with Line(admin_broker.bootstrap_servers) as line:
        for at in range(5):
            produced(line, topic, batch(str(at), timestamp=NOW_MS + at * 1000))
    return TopicPartition(topic, 0)


@pytest.mark.spec("TOOL-18")
def test_offsets_are_found_at_both_ends_and_by_time(
    admin: ottla.Admin, filled: TopicPartition
) -> None:
    def at(spec: OffsetSpec | int) -> int | None:
        return admin.list_offsets({filled: spec}).one().offset

    assert at(OffsetSpec.EARLIEST) == 0
    assert at(OffsetSpec.LATEST) == 5
    assert at(OffsetSpec.MAX_TIMESTAMP) == 4
    assert at(NOW_MS + 1500) == 2
    assert at(NOW_MS + 99_000) is None
    assert admin.list_offsets({filled: NOW_MS + 1500}).one().timestamp == NOW_MS + 2000


@pytest.mark.spec("TOOL-18")
def test_records_are_deleted_up_to_an_offset_or_all(
    admin: ottla.Admin, filled: TopicPartition
) -> None:
    assert admin.delete_records({filled: 2}).one() == 2
    assert admin.list_offsets({filled: OffsetSpec.EARLIEST}).one().offset == 2
    assert admin.delete_records({filled: -1}).one() == 5


def test_each_partition_has_its_own_outcome(admin: ottla.Admin, filled: TopicPartition) -> None:
    beyond, elsewhere = TopicPartition(filled.topic, 9), TopicPartition("nowhere", 0)
    found = admin.list_offsets(dict.fromkeys([filled, beyond, elsewhere], OffsetSpec.LATEST))
    assert list(found) == [filled, beyond, elsewhere]
    assert list(found.succeeded) == [filled]
    for missing in (beyond, elsewhere):
        error = found[missing]
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.unknown_topic_or_partition
    refused = admin.delete_records({filled: 99})[filled]
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.offset_out_of_range


def test_partitions_are_nested_below_their_topics() -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("b", 1), TopicPartition("a", 2)]
    assert indexes_by_topic("partitions", partitions) == [
        {"name": "a", "partitions": [0, 2]},
        {"name": "b", "partitions": [1]},
    ]
    assert by_topic("rows", {partitions[0]: "x"}, name="topic") == [{"topic": "a", "rows": ["x"]}]
