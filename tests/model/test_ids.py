from __future__ import annotations

from ottla.model.ids import TopicPartition


def test_a_partition_reads_as_its_directory_is_named() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"


def test_partitions_are_sorted_by_topic_and_then_by_number() -> None:
    mixed = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]
    assert [str(one) for one in sorted(mixed)] == ["a-2", "a-10", "b-0"]
