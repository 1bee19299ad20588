"""Sticky: shares as balanced as the subscriptions allow, then as few moves as possible.

Balance takes precedence over stickiness. The previous assignment is sent in the subscription's user
data, because members of an eager group own nothing while they join.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ottla.client.consumer.assignors import claims
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
        owned = {member: decode_owned(subscription.user_data) for member, subscription in members.items()}
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
    holders = claims.settle(owned, topics, partitions)
    takers = subscribers(members)
    balance = Balance(in_order(members), takers, holders)
    balance.assign_to_smallest(tp for tp in all_partitions(takers, partitions) if tp not in holders)
    balance.balance()
    return balance.shares()
