"""The assignor of even shares: complete, even, and moving as little as it can."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from hypothesis import given, settings

from ottla.coordinator.group.consumer.assignors import Subscriber, assign_uniform
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts, TopicIdPartition
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

A, B, C = TOPICS[:3]


def reader(*topics: object, target: Parts = NO_PARTS) -> Subscriber:
    return Subscriber(frozenset(topic for topic in TOPICS if topic in topics), target)


def sizes_of(shares: Mapping[str, Parts]) -> list[int]:
    return sorted(map(len, shares.values()))


@given(alike, counts)
def test_with_equal_subscriptions_shares_differ_by_one_at_most(
    members: Members, partitions: Counts
) -> None:
    shares = assign_uniform(members, partitions)
    check_complete(members, partitions, shares)
    lengths = sizes_of(shares)
    assert not lengths or lengths[-1] - lengths[0] <= 1


@given(alike, counts)
def test_with_equal_subscriptions_no_even_share_out_moves_fewer(
    members: Members, partitions: Counts
) -> None:
    before = _first_shares(members, partitions)
    fewer = dict(sorted(before.items())[: len(before) // 2 + 1])
    after = assign_uniform(fewer, partitions)
    kept = sum(len(after[name] & member.target) for name, member in fewer.items())
    total = sum(map(len, after.values()))
    least, more = divmod(total, len(fewer)) if fewer else (0, 0)
    had = sorted((len(member.target) for member in fewer.values()), reverse=True)
    best = sum(min(count, least + (at < more)) for at, count in enumerate(had))
    assert kept == best


@given(unlike, counts)
def test_every_partition_has_one_owner_who_reads_it(members: Members, partitions: Counts) -> None:
    shares = assign_uniform(members, partitions)
    check_complete(members, partitions, shares)


@given(unlike, counts)
def test_where_nothing_changed_nothing_moves(members: Members, partitions: Counts) -> None:
    shares = assign_uniform(members, partitions)
    assert assign_uniform(again(members, shares), partitions) == shares


@settings(max_examples=60)
@given(unlike, counts)
def test_with_differing_subscriptions_no_share_out_is_more_even(
    members: Members, partitions: Counts
) -> None:
    few = dict(sorted(members.items())[:3])
    small = dict(list(partitions.items())[:3])
    small = {topic: min(count, 2) for topic, count in small.items()}
    shares = assign_uniform(few, small)
    readers = [
        [name for name, member in few.items() if topic in member.topics]
        for topic, count in small.items()
        for _ in range(count)
    ]
    possible = [
        sorted((owners.count(name) for name in few), reverse=True)
        for owners in product(*(names for names in readers if names))
    ]
    assert sizes_of(shares)[::-1] == min(possible)


def test_a_chain_of_members_passes_partitions_on() -> None:
    members = {
        "x": reader(A, target=frozenset()),
        "y": reader(A, B, target=frozenset({TopicIdPartition(A, 0), TopicIdPartition(A, 1)})),
        "z": reader(
            B,
            target=frozenset(
                {
                    TopicIdPartition(B, 0),
                    TopicIdPartition(B, 1),
                    TopicIdPartition(B, 2),
                    TopicIdPartition(B, 3),
                }
            ),
        ),
    }
    shares = assign_uniform(members, {A: 2, B: 4})
    assert sizes_of(shares) == [2, 2, 2]


def test_a_topic_is_spread_over_its_readers() -> None:
    members = {"x": reader(A, B), "y": reader(A, B)}
    shares = assign_uniform(members, {A: 2, B: 2})
    assert all({part.topic_id for part in share} == {A, B} for share in shares.values())


def test_thousands_of_partitions_are_no_trouble() -> None:
    members = {f"m{at}": reader(A, B, C) if at % 2 else reader(A, B) for at in range(100)}
    shares = assign_uniform(members, {A: 2_000, B: 2_000, C: 1_000})
    assert sizes_of(shares)[0] == sizes_of(shares)[-1] == 50
    grown = {**again(members, shares), "new": reader(A, C)}
    after = assign_uniform(grown, {A: 2_000, B: 2_000, C: 1_000})
    kept = sum(len(after[name] & share) for name, share in shares.items())
    assert kept == 5_000 - len(after["new"])
    assert len(after["new"]) == 49


def _first_shares(members: Members, partitions: Counts) -> dict[str, Subscriber]:
    return again(members, assign_uniform(members, partitions))
