"""The assignor of stretches."""

from __future__ import annotations

from hypothesis import given

from ottla.coordinator.group.consumer.assignors import Subscriber, assign_range
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, TopicIdPartition
from tests.coordinator.group.consumer.assignor_groups import (
    TOPICS,
    Counts,
    Members,
    again,
    alike,
    check_complete,
    counts,
    unlike,
)

A, B = TOPICS[:2]


def reader(*, instance: str | None = None) -> Subscriber:
    return Subscriber(frozenset(TOPICS[:2]), NO_PARTS, instance)


def test_each_gets_the_same_stretch_of_every_topic() -> None:
    shares = assign_range({"m0": reader(), "m1": reader()}, {A: 3, B: 3})
    assert shares["m0"] == {
        TopicIdPartition(A, 0),
        TopicIdPartition(A, 1),
        TopicIdPartition(B, 0),
        TopicIdPartition(B, 1),
    }
    assert shares["m1"] == {TopicIdPartition(A, 2), TopicIdPartition(B, 2)}


def test_static_members_keep_their_stretch_under_another_id() -> None:
    before = assign_range({"x": reader(instance="i"), "y": reader(instance="j")}, {A: 3})
    after = assign_range({"z": reader(instance="i"), "w": reader(instance="j")}, {A: 3})
    assert after == {"z": before["x"], "w": before["y"]}


def test_more_members_than_partitions_leave_some_with_nothing() -> None:
    shares = assign_range({name: reader() for name in "abc"}, {A: 2})
    assert [len(shares[name]) for name in "abc"] == [1, 1, 0]


@given(unlike, counts)
def test_every_partition_has_one_owner_who_reads_it(members: Members, sizes: Counts) -> None:
    shares = assign_range(members, sizes)
    check_complete(members, sizes, shares)
    assert assign_range(again(members, shares), sizes) == shares


@given(alike, counts)
def test_stretches_of_one_topic_differ_by_one_at_most(members: Members, sizes: Counts) -> None:
    shares = assign_range(members, sizes)
    for topic in sizes:
        lengths = [sum(part.topic_id == topic for part in share) for share in shares.values()]
        assert not lengths or max(lengths) - min(lengths) <= 1
        for share in shares.values():
            mine = sorted(part.partition for part in share if part.topic_id == topic)
            assert not mine or mine == list(range(mine[0], mine[-1] + 1))
