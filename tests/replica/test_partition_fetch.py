"""What a fetch wants of a partition, and what it gets."""

from __future__ import annotations

from uuid import UUID

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.hot import FetchedPartition
from ottla.replica.partition_fetch import UNKNOWN_TOPIC, PartitionFetch, PartitionFetchResult

ID = UUID(int=3)


def test_a_topic_is_named_as_soon_as_its_id_is_known() -> None:
    want = PartitionFetch(TopicPartition(UNKNOWN_TOPIC, 4), ID)
    assert not want.resolve_name({UUID(int=2): "other"})
    assert want.key == TopicPartition(UNKNOWN_TOPIC, 4)
    assert want.resolve_name({ID: "t"})
    assert want.key == TopicPartition("t", 4)


def test_whatever_is_not_an_answer_has_failed() -> None:
    want = PartitionFetch(TopicPartition("t", 0))
    assert not PartitionFetchResult(want, FetchedPartition(0, ErrorCode.none), 0).failed
    assert PartitionFetchResult(want, FetchedPartition(0, ErrorCode.offset_out_of_range), 0).failed
