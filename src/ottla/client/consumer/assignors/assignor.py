"""The interface of an assignment strategy; the range and round-robin strategies.

Owns the interface that custom strategies implement, and the order of members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import cycle
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ottla.model.ids import TopicPartition

Shares: TypeAlias = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id."""


class Protocols(Enum):
    """How a member behaves during a rebalance."""

    EAGER = "eager"
    """It revokes all its partitions before it rejoins."""
    COOPERATIVE = "cooperative"
    """It keeps its partitions and revokes only those that the new assignment moves."""


class Subscription(NamedTuple):
    """The topics a member subscribes to and the partitions it owns."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None
    instance_id: str | None = None


@runtime_checkable
class Assignor(Protocol):
    """A strategy of `partition.assignment.strategy`; one object serves one consumer."""

    @property
    def name(self) -> str:
        """The protocol name that the group votes on; equal names must mean the same strategy."""
        ...

    @property
    def protocol(self) -> Protocols: ...

    def user_data(self, topics: Collection[str]) -> bytes | None:
        """Data for the leader in addition to the topics."""
        ...

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        """The partitions of every member; `partitions` is the number of each topic's partitions."""
        ...

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Called with the partitions assigned to this member."""
        ...


def in_order(members: Mapping[str, Subscription]) -> list[str]:
    """Member ids in order: static members first, by instance id.

    A static member gets a new member id whenever it restarts; its place must not change with it.
    """

    def rank(member: str) -> tuple[bool, str]:
        instance_id = members[member].instance_id
        return instance_id is None, member if instance_id is None else instance_id

    return sorted(members, key=rank)


def subscribers(members: Mapping[str, Subscription]) -> dict[str, list[str]]:
    """The members of each topic, in order; topics in alphabetical order."""
    by_topic: dict[str, list[str]] = {
        topic: [] for topic in sorted({t for s in members.values() for t in s.topics})
    }
    for member in in_order(members):
        for topic in set(members[member].topics):
            by_topic[topic].append(member)
    return by_topic


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
            quota, surplus = divmod(partitions.get(topic, 0), len(takers))
            start = 0
            for place, member in enumerate(takers):
                end = start + quota + (place < surplus)
                shares[member] += [TopicPartition(topic, index) for index in range(start, end)]
                start = end
        return shares

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Nothing to remember: every assignment is computed from scratch."""


class RoundRobinAssignor:
    """Members in a circle; each partition goes to the next one that wants its topic."""

    name: Final = "roundrobin"
    protocol: Final = Protocols.EAGER

    def user_data(self, topics: Collection[str]) -> None:
        return None

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Shares:
        shares: Shares = {member: [] for member in members}
        wants = {member: frozenset(subscription.topics) for member, subscription in members.items()}
        circle = cycle(in_order(members))
        for partition in all_partitions(frozenset().union(*wants.values()), partitions):
            taker = next(member for member in circle if partition.topic in wants[member])
            shares[taker].append(partition)
        return shares

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Nothing to remember: every assignment is computed from scratch."""
