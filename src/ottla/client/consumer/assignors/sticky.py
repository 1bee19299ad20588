"""Sticky: shares as balanced as the subscriptions allow, then as few moves as possible.

Balance takes precedence over stickiness. The previous assignment is sent in the subscription's user
data, because members of an eager group own nothing while they join.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.consumer.assignors.assignor import (
    Protocols,
    Shares,
    Subscription,
    all_partitions,
    in_order,
    subscribers,
)
from ottla.client.consumer.assignors.balance import Balance
from ottla.client.consumer.assignors.user_data import OwnedPartitions, decode_owned, encode_owned
from ottla.model.ids import TopicPartition


class StickyAssignor:
    """Balanced first, sticky second."""

    name: Final = "sticky"
    protocol: Final = Protocols.EAGER

    def __init__(self) -> None:
        self._owned: tuple[TopicPartition, ...] | None = None
        self._generation = -1

    def user_data(self, topics: Collection[str]) -> bytes | None:
        return None if self._owned is None else encode_owned(self._owned, self._generation)

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        owned = {
            member: decode_owned(subscription.user_data) for member, subscription in members.items()
        }
        return sticky_shares(members, owned, partitions)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._owned = tuple(partitions)
        self._generation = generation


def sticky_shares(
    members: Mapping[str, Subscription],
    owned: Mapping[str, OwnedPartitions],
    partitions: Mapping[str, int],
) -> Shares:
    """Balanced shares that keep as many partitions as possible with their owners."""
    topics = {member: frozenset(subscription.topics) for member, subscription in members.items()}
    holders = resolve_claims(owned, topics, partitions)
    takers = subscribers(members)
    balance = Balance(in_order(members), takers, holders)
    balance.assign_to_smallest(tp for tp in all_partitions(takers, partitions) if tp not in holders)
    balance.balance()
    return balance.shares()


class Claim(NamedTuple):
    generation: int
    member: str | None
    """None: two members claim it from the same generation, so neither claim counts."""


def resolve_claims(
    owned: Mapping[str, OwnedPartitions],
    topics: Mapping[str, frozenset[str]],
    partitions: Mapping[str, int],
) -> dict[TopicPartition, str]:
    """The owner of each partition that still exists and that its owner still subscribes to.

    A member that missed a rebalance still claims its old partitions; their new owners claim them
    from a later generation, which takes precedence.
    """
    claims: dict[TopicPartition, Claim] = {}
    for member, (claimed, generation) in owned.items():
        for partition in set(claimed):
            if not 0 <= partition.partition < partitions.get(partition.topic, 0):
                continue
            rival = claims.get(partition)
            if rival is None or generation > rival.generation:
                claims[partition] = Claim(generation, member)
            elif generation == rival.generation:
                claims[partition] = Claim(generation, None)
    return {
        partition: claim.member
        for partition, claim in claims.items()
        if claim.member is not None and partition.topic in topics[claim.member]
    }
