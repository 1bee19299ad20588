"""What an assignment strategy is, and what it is told.

Owns the port that a user's own strategy fills, and the order in which members are counted. Never
decides who gets what.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import cycle
from typing import Final, NamedTuple, Protocol, TypeAlias

from ottla.model.ids import TopicPartition

Shares: TypeAlias = dict[str, list[TopicPartition]]
"""What each member gets, by member id."""


class Protocols(Enum):
    """How a member behaves while its group is dealt out anew."""

    EAGER = "eager"
    """It gives up all it has before it joins again."""
    COOPERATIVE = "cooperative"
    """It keeps what it has and gives up only what the new assignment takes from it."""


class Subscription(NamedTuple):
    """What one member wants and says it has."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None
    instance_id: str | None = None


class Assignor(Protocol):
    """A strategy of `partition.assignment.strategy`; one object serves one consumer."""

    @property
    def name(self) -> str:
        """What the group votes on; members that share a name must agree on the strategy."""
        ...

    @property
    def protocol(self) -> Protocols: ...

    def user_data(self, topics: Collection[str]) -> bytes | None:
        """What this member tells the leader beside its topics."""
        ...

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        """Every member's share, given each topic's number of partitions."""
        ...

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """The member's own share has arrived."""
        ...


def in_order(members: Mapping[str, Subscription]) -> list[str]:
    """Member ids as everybody counts them: static members first, by the name they were given.

    A static member gets a new id whenever it restarts; its place must not change with it.
    """

    def rank(member: str) -> tuple[bool, str]:
        instance_id = members[member].instance_id
        return instance_id is None, member if instance_id is None else instance_id

    return sorted(members, key=rank)


def subscribers(members: Mapping[str, Subscription]) -> dict[str, list[str]]:
    """The members of each topic, in order; topics in alphabetical order."""
    found: dict[str, list[str]] = {
        topic: [] for topic in sorted({t for s in members.values() for t in s.topics})
    }
    for member in in_order(members):
        for topic in set(members[member].topics):
            found[topic].append(member)
    return found


def all_partitions(topics: Iterable[str], partitions: Mapping[str, int]) -> list[TopicPartition]:
    """Every partition of these topics that exists, in order."""
    return [
        TopicPartition(topic, index)
        for topic in sorted(topics)
        for index in range(partitions.get(topic, 0))
    ]


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
