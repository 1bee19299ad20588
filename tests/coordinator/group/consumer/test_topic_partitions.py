"""Partitions by topic id."""

from __future__ import annotations

from uuid import UUID

from ottla.coordinator.group.consumer.topic_partitions import (
    TopicIdPartition,
    TopicSize,
    by_name,
    by_topic,
    from_names,
    sizes,
)
from tests.coordinator.group.consumer.scene import id_of, image_of, parts

IMAGE = image_of({"a": 2, "b": 3})


def test_sizes_are_those_of_topics_that_exist() -> None:
    assert sizes(IMAGE, ["b", "gone"]) == {"b": TopicSize(id_of("b"), 3)}


def test_partitions_are_sorted_by_topic() -> None:
    held = parts("b", 2, 0) | parts("a", 1)
    assert by_topic(held) == {id_of("a"): [1], id_of("b"): [0, 2]}


def test_names_come_and_go_with_their_topics() -> None:
    held = parts("b", 0) | parts("gone", 1)
    assert by_name(IMAGE, held) == {"b": [0]}
    assert from_names(IMAGE, {"b": [0], "gone": [1]}) == parts("b", 0)


def test_equal_topic_ids_of_different_objects_are_one_topic() -> None:
    twin = UUID(bytes=id_of("a").bytes)
    held = {TopicIdPartition(id_of("a"), 1), TopicIdPartition(twin, 0)}
    assert by_topic(held) == {id_of("a"): [0, 1]}
