"""Cooperative sticky: the shares of `sticky`, reached in two steps.

Members keep reading during a rebalance. A partition that is to move is first withheld from all; its
owner revokes it and rejoins, and only then it goes to its new owner. So no partition ever has two
owners.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ottla.client.consumer.assignors.assignor import Protocols, Shares, Subscription
from ottla.client.consumer.assignors.sticky import sticky_shares
from ottla.client.consumer.assignors.user_data import (
    NO_GENERATION,
    OwnedPartitions,
    decode_generation,
    encode_generation,
)
from ottla.model.ids import TopicPartition


class CooperativeStickyAssignor:
    """Partitions that stay are never revoked."""

    name: Final = "cooperative-sticky"
    protocol: Final = Protocols.COOPERATIVE

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: Collection[str]) -> bytes:
        return encode_generation(self._generation)

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        owned = {
            member: _owned_partitions(subscription) for member, subscription in members.items()
        }
        shares = sticky_shares(members, owned, partitions)
        return without_unrevoked(
            shares,
            {member: frozenset(subscription.owned) for member, subscription in members.items()},
        )

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._generation = generation


def without_unrevoked(shares: Shares, owned: Mapping[str, frozenset[TopicPartition]]) -> Shares:
    """The shares without partitions that another member must revoke first."""
    owners: dict[TopicPartition, set[str]] = {}
    for member, partitions in owned.items():
        for partition in partitions:
            owners.setdefault(partition, set()).add(member)
    nobody: set[str] = set()
    return {
        member: [tp for tp in share if member in (current := owners.get(tp, nobody)) or not current]
        for member, share in shares.items()
    }


def _owned_partitions(subscription: Subscription) -> OwnedPartitions:
    generation = subscription.generation
    if generation == NO_GENERATION:  # a subscription of an older version
        generation = decode_generation(subscription.user_data)
    return OwnedPartitions(subscription.owned, generation)
