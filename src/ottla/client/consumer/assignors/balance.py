"""Balances shares with few moves.

Pure. Shares start as what members own. Unowned partitions go to the member with the fewest; then,
while a member has at least two more than another that could take one from it, directly or through
others in between, the shortest such chain of moves is made. At the end the shares are as balanced
as the subscriptions allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from ottla.client.consumer.assignors.assignor import Shares
from ottla.model.ids import TopicPartition


class Step(NamedTuple):
    """One partition of `topic` goes from one member to the next."""

    giver: str
    taker: str
    topic: str


class Balance:
    """The shares while they are computed."""

    def __init__(
        self,
        order: Sequence[str],
        takers: Mapping[str, Sequence[str]],
        holders: Mapping[TopicPartition, str],
    ) -> None:
        self._rank = {member: place for place, member in enumerate(order)}
        self._takers = takers
        self._holders = holders
        self._owner: dict[TopicPartition, str] = {}
        self._by_topic: dict[str, dict[str, set[int]]] = {member: {} for member in order}
        self._size = dict.fromkeys(order, 0)
        for partition, member in holders.items():
            self._give(member, partition)

    def assign_to_smallest(self, partitions: Iterable[TopicPartition]) -> None:
        """Give each of these to the subscriber with the smallest share.

        Partitions with few subscribers come first; the others can balance that out.
        """
        by_choice = sorted(
            partitions, key=lambda tp: (len(self._takers[tp.topic]), tp.topic, tp.partition)
        )
        topic, heap = "", list[tuple[int, int, str]]()
        for partition in by_choice:
            if partition.topic != topic:
                topic = partition.topic
                heap = [(self._size[m], self._rank[m], m) for m in self._takers[topic]]
                heapify(heap)
            size, rank, member = heap[0]
            self._give(member, partition)
            heapreplace(heap, (size + 1, rank, member))

    def balance(self) -> None:
        while chain := self._next_chain():
            for step in reversed(chain):  # the last first, so that no member gives what it just got
                self._move(step)

    def shares(self) -> Shares:
        shares: Shares = {member: [] for member in self._size}
        for partition in sorted(self._owner):
            shares[self._owner[partition]].append(partition)
        return shares

    def _next_chain(self) -> list[Step]:
        """The shortest chain of moves from the largest share for which there is one."""
        least = min(self._size.values(), default=0)
        for giver in sorted(
            self._size, key=lambda member: (-self._size[member], self._rank[member])
        ):
            if self._size[giver] - least < 2:
                return []
            if chain := self._chain_from(giver):
                return chain
        return []

    def _chain_from(self, giver: str) -> list[Step]:
        """Breadth-first: who could take from the giver, who from those, and so on."""
        came_by: dict[str, Step] = {}
        seen_topics: set[str] = set()
        level = [giver]
        while level:
            following: list[str] = []
            for member in level:
                for topic in sorted(self._by_topic[member].keys() - seen_topics):
                    seen_topics.add(topic)
                    for taker in self._takers[topic]:
                        if taker != giver and taker not in came_by:
                            came_by[taker] = Step(member, taker, topic)
                            following.append(taker)
            light = [m for m in following if self._size[m] <= self._size[giver] - 2]
            if light:
                end = min(light, key=lambda member: (self._size[member], self._rank[member]))
                return _chain(came_by, giver, end)
            level = following
        return []

    def _move(self, step: Step) -> None:
        """Preferably a partition the giver did not own before, or one the taker did."""

        def preference(index: int) -> tuple[bool, bool, int]:
            holder = self._holders.get(TopicPartition(step.topic, index))
            return holder == step.taker, holder != step.giver, index

        index = max(self._by_topic[step.giver][step.topic], key=preference)
        self._take(step.giver, TopicPartition(step.topic, index))
        self._give(step.taker, TopicPartition(step.topic, index))

    def _give(self, member: str, partition: TopicPartition) -> None:
        self._owner[partition] = member
        self._by_topic[member].setdefault(partition.topic, set()).add(partition.partition)
        self._size[member] += 1

    def _take(self, member: str, partition: TopicPartition) -> None:
        indexes = self._by_topic[member][partition.topic]
        indexes.remove(partition.partition)
        if not indexes:
            del self._by_topic[member][partition.topic]
        self._size[member] -= 1


def _chain(came_by: Mapping[str, Step], giver: str, end: str) -> list[Step]:
    steps: list[Step] = []
    member = end
    while member != giver:
        steps.append(came_by[member])
        member = came_by[member].giver
    return steps[::-1]
