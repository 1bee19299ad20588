"""Partitions by topic id, and sets of them. Pure.

A topic that is deleted and created again has another id, so assignments of the old one do not
apply to the new one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from ottla.metadata.image import Image
from ottla.model.ids import TopicId

_number: Final = attrgetter("int")


class TopicIdPartition(NamedTuple):
    topic_id: TopicId
    partition: int


Parts: TypeAlias = frozenset[TopicIdPartition]
OwnedParts: TypeAlias = Set[TopicIdPartition]
"""What a member says that it has; who read the request empties it afterwards."""
NO_PARTS: Final[Parts] = frozenset()


class TopicSize(NamedTuple):
    """What an assignor needs of a topic."""

    id: TopicId
    partitions: int


Sizes: TypeAlias = Mapping[str, TopicSize]


def sizes(image: Image, names: Iterable[str]) -> dict[str, TopicSize]:
    """Id and partition count of the topics that exist, by name."""
    existing = sorted(image.topics.keys() & names)
    topics = ((name, image.topics[name]) for name in existing)
    return {name: TopicSize(it.id, len(it.partitions)) for name, it in topics}


def by_topic(parts: Iterable[TopicIdPartition]) -> dict[TopicId, list[int]]:
    """Topics and their partitions in order."""
    # By object first: ids hash and compare slowly, and most partitions of a topic share theirs.
    ids: dict[int, TopicId] = {}
    lists: dict[int, list[int]] = defaultdict(list)
    for topic_id, partition in parts:
        key = id(topic_id)
        ids[key] = topic_id
        lists[key].append(partition)
    topics: dict[TopicId, list[int]] = defaultdict(list)
    for key, partitions in lists.items():
        topics[ids[key]] += partitions
    # By number: ids compare slowly, too.
    return {topic_id: sorted(topics[topic_id]) for topic_id in sorted(topics, key=_number)}


def by_name(image: Image, parts: Iterable[TopicIdPartition]) -> dict[str, list[int]]:
    """The partitions whose topics still exist, by topic name."""
    topics = by_topic(parts).items()
    return {image.names[id]: indexes for id, indexes in topics if id in image.names}


def from_names(image: Image, topics: Mapping[str, Iterable[int]]) -> Parts:
    return frozenset(
        TopicIdPartition(image.topics[name].id, partition)
        for name, partitions in topics.items()
        if name in image.topics
        for partition in partitions
    )
