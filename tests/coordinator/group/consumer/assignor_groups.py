"""Groups for assignors to share out among, made up by Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from hypothesis import strategies as st

from ottla.coordinator.group.consumer.assignors import Subscriber
from ottla.coordinator.group.consumer.topic_partitions import Parts, TopicIdPartition

TOPICS = tuple(UUID(int=number) for number in range(1, 5))
Members = Mapping[str, Subscriber]
Counts = Mapping[UUID, int]

counts = st.fixed_dictionaries({}, optional=dict.fromkeys(TOPICS, st.integers(1, 6)))
held = st.frozensets(
    st.builds(TopicIdPartition, st.sampled_from(TOPICS), st.integers(0, 7)), max_size=8
)
subscriptions = st.frozensets(st.sampled_from(TOPICS))
ids = st.sampled_from("abcdefgh")


def groups(topics: st.SearchStrategy[frozenset[UUID]]) -> st.SearchStrategy[dict[str, Subscriber]]:
    return st.dictionaries(ids, st.builds(Subscriber, topics, held), max_size=8)


alike = subscriptions.flatmap(lambda topics: groups(st.just(topics)))
"""Everybody reads the same."""
unlike = groups(subscriptions)


def check_complete(members: Members, partitions: Counts, shares: Mapping[str, Parts]) -> None:
    """Every partition that somebody reads has one owner, who reads it."""
    assert shares.keys() == members.keys()
    given = [part for share in shares.values() for part in share]
    read = {topic for member in members.values() for topic in member.topics}
    wanted = {
        TopicIdPartition(topic, index)
        for topic, count in partitions.items()
        if topic in read
        for index in range(count)
    }
    assert len(given) == len(set(given))
    assert set(given) == wanted
    for member_id, share in shares.items():
        assert {part.topic_id for part in share} <= members[member_id].topics


def again(members: Members, shares: Mapping[str, Parts]) -> dict[str, Subscriber]:
    """The same group, with the shares it was given."""
    return {
        member_id: member._replace(target=shares[member_id])
        for member_id, member in members.items()
    }
