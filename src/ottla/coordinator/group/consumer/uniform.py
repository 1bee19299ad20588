"""The assignor `uniform`: everybody gets as much as everybody else, and keeps what it had.

Pure. Where all members read the same topics, shares differ by one partition at most, and no other
even share-out would have moved fewer. Where subscriptions differ, no partition can be passed on,
along any chain of members that may read it, so that a larger share shrinks and a smaller grows by
it: then no share-out is more even.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from ottla.coordinator.group.consumer.parts import Part, Parts
from ottla.coordinator.group.consumer.range import Subscriber
from ottla.model.ids import TopicId


def assign_uniform(
    members: Mapping[str, Subscriber], partitions: Mapping[TopicId, int]
) -> dict[str, Parts]:
    read = frozenset[TopicId]().union(*(member.topics for member in members.values()))
    parts = [
        Part(topic_id, index)
        for topic_id, count in sorted(partitions.items())
        if topic_id in read
        for index in range(count)
    ]
    shares = _kept(members, parts)
    held = {part for share in shares.values() for part in share}
    free = [part for part in parts if part not in held]
    if len({member.topics for member in members.values()}) <= 1:
        _level(shares, free)
    else:
        readers = _readers(members)
        _hand_out(shares, readers, free)
        Evening(shares, readers).run()
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _kept(members: Mapping[str, Subscriber], parts: Iterable[Part]) -> dict[str, set[Part]]:
    """What each had and may go on reading; what two had stays with one of them."""
    left = set(parts)
    shares: dict[str, set[Part]] = {}
    for member_id, member in sorted(members.items()):
        shares[member_id] = {part for part in member.target & left if part[0] in member.topics}
        left -= shares[member_id]
    return shares


# Equal subscriptions


def _level(shares: dict[str, set[Part]], free: list[Part]) -> None:
    if not shares:
        return
    least, more = divmod(sum(map(len, shares.values())) + len(free), len(shares))
    # Those who have most keep one more than the others: so the fewest partitions move.
    ranked = sorted(shares, key=lambda member_id: (-len(shares[member_id]), member_id))
    quota = {member_id: least + (at < more) for at, member_id in enumerate(ranked)}
    for member_id, share in shares.items():
        surplus = sorted(share)[quota[member_id] :]
        share.difference_update(surplus)
        free += surplus
    # One each in turn, so that a topic is spread and not given away whole.
    needy = deque(member_id for member_id in ranked if len(shares[member_id]) < quota[member_id])
    for part in sorted(free):
        member_id = needy.popleft()
        shares[member_id].add(part)
        if len(shares[member_id]) < quota[member_id]:
            needy.append(member_id)


# Differing subscriptions


def _readers(members: Mapping[str, Subscriber]) -> dict[TopicId, list[str]]:
    readers: dict[TopicId, list[str]] = {}
    for member_id, member in sorted(members.items()):
        for topic_id in member.topics:
            readers.setdefault(topic_id, []).append(member_id)
    return readers


def _hand_out(
    shares: dict[str, set[Part]], readers: Mapping[TopicId, list[str]], free: Iterable[Part]
) -> None:
    # Where there is least choice, choose first.
    for part in sorted(free, key=lambda part: (len(readers[part.topic_id]), part)):
        taker = min(readers[part.topic_id], key=lambda member_id: len(shares[member_id]))
        shares[taker].add(part)


class Evening:
    """Partitions passed on from larger shares to smaller ones, until that is no use.

    The largest share is looked at first. If nothing can be passed on from it, then neither from
    any share it could have reached: those are at most as large, and lead nowhere else. Each member
    is given up once at most, which bounds the whole.
    """

    def __init__(self, shares: dict[str, set[Part]], readers: Mapping[TopicId, list[str]]) -> None:
        self._shares = shares
        self._readers = readers
        self._topics = {member_id: _stacked(share) for member_id, share in shares.items()}
        self._done: set[str] = set()

    def run(self) -> None:
        heap = [(-len(share), member_id) for member_id, share in self._shares.items()]
        heapify(heap)
        while heap:
            size, start = heappop(heap)
            if start in self._done or len(self._shares[start]) != -size:
                continue
            end = self._pass_on(start)
            if end is not None:
                for changed in (start, end):
                    heappush(heap, (-len(self._shares[changed]), changed))

    def _pass_on(self, start: str) -> str | None:
        """Pass one on along the shortest chain to somebody with two fewer; who that is."""
        came: dict[str, tuple[str, TopicId]] = {}
        seen, queue = {start}, deque([start])
        while queue:
            giver = queue.popleft()
            for topic_id in self._topics[giver]:
                for taker in self._readers[topic_id]:
                    if taker in seen or taker in self._done:
                        continue
                    seen.add(taker)
                    came[taker] = giver, topic_id
                    if len(self._shares[taker]) <= len(self._shares[start]) - 2:
                        self._move(start, taker, came)
                        return taker
                    queue.append(taker)
        self._done |= seen
        return None

    def _move(self, start: str, end: str, came: Mapping[str, tuple[str, TopicId]]) -> None:
        taker = end
        while taker != start:
            giver, topic_id = came[taker]
            part = self._topics[giver][topic_id].pop()
            if not self._topics[giver][topic_id]:
                del self._topics[giver][topic_id]
            self._topics[taker].setdefault(topic_id, []).append(part)
            self._shares[giver].remove(part)
            self._shares[taker].add(part)
            taker = giver


def _stacked(share: Iterable[Part]) -> dict[TopicId, list[Part]]:
    stacks: dict[TopicId, list[Part]] = {}
    for part in sorted(share):
        stacks.setdefault(part.topic_id, []).append(part)
    return stacks
