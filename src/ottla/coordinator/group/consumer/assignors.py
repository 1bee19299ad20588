"""The assignors by the names that members and settings call them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from ottla.coordinator.group.consumer.topic_partitions import Parts, TopicIdPartition
from ottla.model.ids import TopicId


class Subscriber(NamedTuple):
    """A member as an assignor sees it."""

    topics: frozenset[TopicId]
    target: Parts
    """What it was to hold so far."""
    instance_id: str | None = None


def assign_range(
    members: Mapping[str, Subscriber], partitions: Mapping[TopicId, int]
) -> dict[str, Parts]:
    shares: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in members}
    order = sorted(members, key=lambda member_id: _rank(member_id, members[member_id]))
    for topic_id, count in partitions.items():
        readers = [member_id for member_id in order if topic_id in members[member_id].topics]
        start = 0
        for at, member_id in enumerate(readers):
            end = start + count // len(readers) + (at < count % len(readers))
            shares[member_id] += [TopicIdPartition(topic_id, index) for index in range(start, end)]
            start = end
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _rank(member_id: str, member: Subscriber) -> tuple[bool, str]:
    return member.instance_id is None, member.instance_id or member_id


Shares: TypeAlias = dict[str, set[int]]
"""Numbers of partitions, by member."""


def assign_uniform(
    members: Mapping[str, Subscriber], partitions: Mapping[TopicId, int]
) -> dict[str, Parts]:
    read = frozenset[TopicId]().union(*(member.topics for member in members.values()))
    topics = sorted(partitions.keys() & read)
    parts = [
        TopicIdPartition(topic_id, at) for topic_id in topics for at in range(partitions[topic_id])
    ]
    numbers = {part: number for number, part in enumerate(parts)}
    had = {
        member_id: {numbers[part] for part in members[member_id].target if part in numbers}
        for member_id in sorted(members)
    }
    spans = _spans([partitions[topic_id] for topic_id in topics])
    readers = [
        [member_id for member_id in had if topic_id in members[member_id].topics]
        for topic_id in topics
    ]
    shares = _kept(had, spans, readers)
    free = sorted(set(range(len(parts))).difference(*shares.values()))
    if all(len(names) == len(members) for names in readers):
        _level(shares, free)
    else:
        _hand_out(shares, free, _topics(spans), readers)
        Balancing(shares, _topics(spans), readers).run()
    return {
        # The very same set where nothing moved: most of a group seldom moves.
        member_id: member.target
        if shares[member_id] == had[member_id] and len(member.target) == len(had[member_id])
        else frozenset(parts[number] for number in shares[member_id])
        for member_id, member in members.items()
    }


def _spans(counts: Iterable[int]) -> list[range]:
    """The numbers of each topic's partitions."""
    spans: list[range] = []
    start = 0
    for count in counts:
        spans.append(range(start, start + count))
        start += count
    return spans


def _topics(spans: Iterable[range]) -> list[int]:
    """For each number of a partition, that of its topic."""
    return [topic for topic, span in enumerate(spans) for _ in span]


def _kept(had: Shares, spans: Sequence[range], readers: Sequence[list[str]]) -> Shares:
    """What each had and may go on reading; what two had stays with one of them."""
    taken: set[int] = set()
    shares = {member_id: set(numbers) for member_id, numbers in had.items()}
    for span, names in zip(spans, readers, strict=True):
        for member_id in shares.keys() - names:
            shares[member_id].difference_update(span)
    for share in shares.values():
        share -= taken
        taken |= share
    return shares


# Equal subscriptions


def _level(shares: Shares, free: list[int]) -> None:
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
    for number in sorted(free):
        member_id = needy.popleft()
        shares[member_id].add(number)
        if len(shares[member_id]) < quota[member_id]:
            needy.append(member_id)


# Differing subscriptions


def _hand_out(
    shares: Shares, free: Iterable[int], topics: Sequence[int], readers: Sequence[list[str]]
) -> None:
    # Where there is least choice, choose first.
    for number in sorted(free, key=lambda number: (len(readers[topics[number]]), number)):
        taker = min(readers[topics[number]], key=lambda member_id: len(shares[member_id]))
        shares[taker].add(number)


class Balancing:
    """Partitions passed on from larger shares to smaller ones, until that is no use.

    The largest share is looked at first. If nothing can be passed on from it, then neither from
    any share it could have reached: those are at most as large, and lead nowhere else. Each member
    is given up once at most, which bounds the whole.
    """

    def __init__(self, shares: Shares, topics: Sequence[int], readers: Sequence[list[str]]) -> None:
        self._shares = shares
        self._readers = readers
        self._held: dict[str, dict[int, list[int]]] = {member_id: {} for member_id in shares}
        for member_id, share in shares.items():
            for number in sorted(share):
                self._held[member_id].setdefault(topics[number], []).append(number)
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
        came: dict[str, tuple[str, int]] = {}
        seen, queue = {start}, deque([start])
        while queue:
            giver = queue.popleft()
            for topic in self._held[giver]:
                for taker in self._readers[topic]:
                    if taker in seen or taker in self._done:
                        continue
                    seen.add(taker)
                    came[taker] = giver, topic
                    if len(self._shares[taker]) <= len(self._shares[start]) - 2:
                        self._move(start, taker, came)
                        return taker
                    queue.append(taker)
        self._done |= seen
        return None

    def _move(self, start: str, end: str, came: Mapping[str, tuple[str, int]]) -> None:
        taker = end
        while taker != start:
            giver, topic = came[taker]
            number = self._held[giver][topic].pop()
            if not self._held[giver][topic]:
                del self._held[giver][topic]
            self._held[taker].setdefault(topic, []).append(number)
            self._shares[giver].remove(number)
            self._shares[taker].add(number)
            taker = giver


Assignor: TypeAlias = Callable[[Mapping[str, Subscriber], Mapping[TopicId, int]], dict[str, Parts]]

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
