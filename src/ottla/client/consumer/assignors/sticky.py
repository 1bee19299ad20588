"""Sticky: shares as even as the subscriptions allow, then as few moves as that allows.

Evenness wins over staying. The previous assignment travels in the subscription's user data,
because members of an eager group own nothing while they join.
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
from ottla.client.consumer.assignors.user_data import Held, decode_held, encode_held
from ottla.model.ids import TopicPartition


class StickyAssignor:
    """Even first, steady second."""

    name: Final = "sticky"
    protocol: Final = Protocols.EAGER

    def __init__(self) -> None:
        self._had: tuple[TopicPartition, ...] | None = None
        self._generation = -1

    def user_data(self, topics: Collection[str]) -> bytes | None:
        return None if self._had is None else encode_held(self._had, self._generation)

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        held = {member: decode_held(told.user_data) for member, told in members.items()}
        return steady_shares(members, held, partitions)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._had = tuple(partitions)
        self._generation = generation


def steady_shares(
    members: Mapping[str, Subscription], held: Mapping[str, Held], partitions: Mapping[str, int]
) -> Shares:
    """Even shares that leave as much as can be where it is held."""
    topics = {member: frozenset(told.topics) for member, told in members.items()}
    holders = claims.settle(held, topics, partitions)
    takers = subscribers(members)
    balance = Balance(in_order(members), takers, holders)
    balance.deal(at for at in all_partitions(takers, partitions) if at not in holders)
    balance.even_out()
    return balance.shares()
