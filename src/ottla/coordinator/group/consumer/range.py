"""The assignor `range`: each topic is cut into stretches, one for each of its members.

Pure. Members take their stretches in the same order in every topic, so that with equal
subscriptions and equal numbers of partitions each gets the same partitions of every topic, which
is what joining topics needs. Static members come first and in the order of their names: a restart
changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.coordinator.group.consumer.topic_partitions import Parts, TopicIdPartition
from ottla.model.ids import TopicId


class Subscriber(NamedTuple):
    """A member as an assignor sees it."""

    topics: frozenset[TopicId]
    target: Parts
    """What it was to hold so far."""
    instance_id: str | None = None


def assign_range(
    members: Mapping[str, Subscriber], partitions: Mapping[TopicId, int]
) -> dict[str, Parts]:
    shares: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in members}
    order = sorted(members, key=lambda member_id: _rank(member_id, members[member_id]))
    for topic_id, count in partitions.items():
        readers = [member_id for member_id in order if topic_id in members[member_id].topics]
        start = 0
        for at, member_id in enumerate(readers):
            end = start + count // len(readers) + (at < count % len(readers))
            shares[member_id] += [TopicIdPartition(topic_id, index) for index in range(start, end)]
            start = end
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _rank(member_id: str, member: Subscriber) -> tuple[bool, str]:
    return member.instance_id is None, member.instance_id or member_id
