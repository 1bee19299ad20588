"""Round robin: all partitions of all topics, dealt out one by one.

Even where members subscribe alike; where they do not, a member that wants much may get it all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from typing import Final

from ottla.client.consumer.assignors.assignor import (
    Protocols,
    Shares,
    Subscription,
    all_partitions,
    in_order,
)
from ottla.model.ids import TopicPartition


class RoundRobinAssignor:
    """Members in a circle; each partition goes to the next one that wants its topic."""

    name: Final = "roundrobin"
    protocol: Final = Protocols.EAGER

    def user_data(self, topics: Collection[str]) -> None:
        return None

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        shares: Shares = {member: [] for member in members}
        wants = {member: frozenset(told.topics) for member, told in members.items()}
        circle = cycle(in_order(members))
        for partition in all_partitions(frozenset().union(*wants.values()), partitions):
            taker = next(member for member in circle if partition.topic in wants[member])
            shares[taker].append(partition)
        return shares

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Nothing to remember: every assignment is worked out afresh."""
