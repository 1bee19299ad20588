"""Range: topic by topic, contiguous ranges of partitions.

With equal partition counts, partition n of every topic goes to the same member, which is what
joins want. The price: the surplus of every topic goes to the same first members.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ottla.client.consumer.assignors.assignor import Protocols, Shares, Subscription, subscribers
from ottla.model.ids import TopicPartition


class RangeAssignor:
    """Each member of a topic gets n // c of its partitions, the first n % c one more."""

    name: Final = "range"
    protocol: Final = Protocols.EAGER

    def user_data(self, topics: Collection[str]) -> None:
        return None

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        shares: Shares = {member: [] for member in members}
        for topic, takers in subscribers(members).items():
            each, surplus = divmod(partitions.get(topic, 0), len(takers))
            start = 0
            for place, member in enumerate(takers):
                end = start + each + (place < surplus)
                shares[member] += [TopicPartition(topic, index) for index in range(start, end)]
                start = end
        return shares

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Nothing to remember: every assignment is worked out afresh."""
