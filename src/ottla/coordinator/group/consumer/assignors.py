"""The server-side assignors, by the names that members and settings use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from ottla.coordinator.group.consumer.topic_partitions import Parts, TopicIdPartition
from ottla.model.ids import TopicId


class Subscriber(NamedTuple):
    """A member as the input of an assignor."""

    topics: frozenset[TopicId]
    target: Parts
    """Its current target assignment."""
    instance_id: str | None = None


def assign_range(
    members: Mapping[str, Subscriber], partitions: Mapping[TopicId, int]
) -> dict[str, Parts]:
    shares: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in members}
    order = sorted(members, key=lambda member_id: _rank(member_id, members[member_id]))
    for topic_id, count in partitions.items():
        readers = [member_id for member_id in order if topic_id in members[member_id].topics]
        start = 0
        for position, member_id in enumerate(readers):
            end = start + count // len(readers) + (position < count % len(readers))
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
        TopicIdPartition(topic_id, index)
        for topic_id in topics
        for index in range(partitions[topic_id])
    ]
    numbers = {part: number for number, part in enumerate(parts)}
    targets = {
        member_id: {numbers[part] for part in members[member_id].target if part in numbers}
        for member_id in sorted(members)
    }
    spans = _spans([partitions[topic_id] for topic_id in topics])
    readers = [
        [member_id for member_id in targets if topic_id in members[member_id].topics]
        for topic_id in topics
    ]
    shares = _retained_shares(targets, spans, readers)
    free = sorted(set(range(len(parts))).difference(*shares.values()))
    if all(len(names) == len(members) for names in readers):
        _level(shares, free)
    else:
        _hand_out(shares, free, _topics(spans), readers)
        Balancing(shares, _topics(spans), readers).run()
    return {
        # The identical set where nothing moved: most members keep theirs.
        member_id: member.target
        if shares[member_id] == targets[member_id] and len(member.target) == len(targets[member_id])
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
    """The number of the topic, for each number of a partition."""
    return [topic for topic, span in enumerate(spans) for _ in span]


def _retained_shares(had: Shares, spans: Sequence[range], readers: Sequence[list[str]]) -> Shares:
    """The partitions that each member may keep; one that two members had stays with one."""
    assigned: set[int] = set()
    shares = {member_id: set(numbers) for member_id, numbers in had.items()}
    for span, names in zip(spans, readers, strict=True):
        for member_id in shares.keys() - names:
            shares[member_id].difference_update(span)
    for share in shares.values():
        share -= assigned
        assigned |= share
    return shares


# Equal subscriptions


def _level(shares: Shares, free: list[int]) -> None:
    if not shares:
        return
    least, more = divmod(sum(map(len, shares.values())) + len(free), len(shares))
    # The members with the largest shares keep one more: so the fewest partitions move.
    ranked = sorted(shares, key=lambda member_id: (-len(shares[member_id]), member_id))
    quota = {member_id: least + (position < more) for position, member_id in enumerate(ranked)}
    for member_id, share in shares.items():
        surplus = sorted(share)[quota[member_id] :]
        share.difference_update(surplus)
        free += surplus
    # Round robin, so that the partitions of a topic are spread over the members.
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
    # Partitions with the fewest possible readers first.
    for number in sorted(free, key=lambda number: (len(readers[topics[number]]), number)):
        taker = min(readers[topics[number]], key=lambda member_id: len(shares[member_id]))
        shares[taker].add(number)


class Balancing:
    """Moves partitions from larger shares to smaller ones, until no move helps.

    The largest share comes first. If nothing can be moved from it, then nothing can be moved from
    any share it could have reached either: those are at most as large and reach no others. Each
    member is finished at most once, which bounds the work.
    """

    def __init__(self, shares: Shares, topics: Sequence[int], readers: Sequence[list[str]]) -> None:
        self._shares = shares
        self._readers = readers
        self._parts_by_topic: dict[str, dict[int, list[int]]] = {
            member_id: {} for member_id in shares
        }
        for member_id, share in shares.items():
            for number in sorted(share):
                self._parts_by_topic[member_id].setdefault(topics[number], []).append(number)
        self._exhausted: set[str] = set()

    def run(self) -> None:
        heap = [(-len(share), member_id) for member_id, share in self._shares.items()]
        heapify(heap)
        while heap:
            size, start = heappop(heap)
            if start in self._exhausted or len(self._shares[start]) != -size:
                continue
            end = self._pass_on(start)
            if end is not None:
                for changed in (start, end):
                    heappush(heap, (-len(self._shares[changed]), changed))

    def _pass_on(self, start: str) -> str | None:
        """Move one partition along the shortest chain to a member with two fewer; that member."""
        origins: dict[str, tuple[str, int]] = {}
        visited, queue = {start}, deque([start])
        while queue:
            giver = queue.popleft()
            for topic in self._parts_by_topic[giver]:
                for taker in self._readers[topic]:
                    if taker in visited or taker in self._exhausted:
                        continue
                    visited.add(taker)
                    origins[taker] = giver, topic
                    if len(self._shares[taker]) <= len(self._shares[start]) - 2:
                        self._move(start, taker, origins)
                        return taker
                    queue.append(taker)
        self._exhausted |= visited
        return None

    def _move(self, start: str, end: str, origins: Mapping[str, tuple[str, int]]) -> None:
        taker = end
        while taker != start:
            giver, topic = origins[taker]
            number = self._parts_by_topic[giver][topic].pop()
            if not self._parts_by_topic[giver][topic]:
                del self._parts_by_topic[giver][topic]
            self._parts_by_topic[taker].setdefault(topic, []).append(number)
            self._shares[giver].remove(number)
            self._shares[taker].add(number)
            taker = giver


Assignor: TypeAlias = Callable[[Mapping[str, Subscriber], Mapping[TopicId, int]], dict[str, Parts]]

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}

LARGE: Final = 20_000
"""Assignments of more work than this are computed outside of the event loop."""


class AssignmentInput(NamedTuple):
    """All that a target assignment depends on."""

    assignor: str
    members: Mapping[str, Subscriber]
    partitions: Mapping[TopicId, int]

    @property
    def is_large(self) -> bool:
        return sum(self.partitions.values()) * (10 + len(self.members)) > LARGE

    def assign(self) -> dict[str, Parts]:
        return ASSIGNORS[self.assignor](self.members, self.partitions)


Assign: TypeAlias = Callable[[AssignmentInput], dict[str, Parts]]


class AssignmentRequired(Exception):
    """A decision needs a large assignment first: compute it, then decide again."""

    def __init__(self, input: AssignmentInput) -> None:
        super().__init__()
        self.input = input


class PreparedAssignment:
    """The last assignment that was computed for a decision, for when it is made again."""

    def __init__(self) -> None:
        self._input: AssignmentInput | None = None
        self._assignment: dict[str, Parts] = {}

    def look_up(self, input: AssignmentInput) -> dict[str, Parts]:
        """Raises AssignmentRequired if it is large, and not the one computed last."""
        if not input.is_large:
            return input.assign()
        if input != self._input:
            raise AssignmentRequired(input)
        return self._assignment

    def compute(self, input: AssignmentInput) -> dict[str, Parts]:
        """However large it is."""
        if input != self._input:
            self._assignment = input.assign()
            self._input = input
        return self._assignment
