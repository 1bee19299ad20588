"""Cooperative sticky: the shares of `sticky`, reached in two steps.

Members keep reading while the group is dealt out. A partition that shall move is first taken from
its owner and given to nobody; the owner gives it up and joins again, and only then it goes to its
new owner. So no partition ever has two.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ottla.client.consumer.assignors.assignor import Protocols, Shares, Subscription
from ottla.client.consumer.assignors.sticky import steady_shares
from ottla.client.consumer.assignors.user_data import (
    NO_GENERATION,
    Held,
    decode_generation,
    encode_generation,
)
from ottla.model.ids import TopicPartition


class CooperativeStickyAssignor:
    """What does not move is never given up."""

    name: Final = "cooperative-sticky"
    protocol: Final = Protocols.COOPERATIVE

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: Collection[str]) -> bytes:
        return encode_generation(self._generation)

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        held = {member: _held(told) for member, told in members.items()}
        shares = steady_shares(members, held, partitions)
        return withheld(shares, {member: frozenset(told.owned) for member, told in members.items()})

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._generation = generation


def withheld(shares: Shares, owned: Mapping[str, frozenset[TopicPartition]]) -> Shares:
    """The shares without what another member must give up first."""
    owners: dict[TopicPartition, set[str]] = {}
    for member, partitions in owned.items():
        for partition in partitions:
            owners.setdefault(partition, set()).add(member)
    nobody: set[str] = set()
    return {
        member: [at for at in share if member in (who := owners.get(at, nobody)) or not who]
        for member, share in shares.items()
    }


def _held(told: Subscription) -> Held:
    generation = told.generation
    if generation == NO_GENERATION:  # a subscription of an older version
        generation = decode_generation(told.user_data)
    return Held(told.owned, generation)
