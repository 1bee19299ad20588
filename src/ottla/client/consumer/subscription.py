"""What a consumer reads: topics, a pattern, or partitions named by hand.

Owns which of the three it is, which may not be mixed, and the assigned partitions. Pure: never
asks a broker who has what.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum

from ottla.client.consumer.position.partition_position import AssignedPartition, PositionPhase
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition


class SubscriptionMode(Enum):
    """How partitions are chosen."""

    NOTHING = "nothing"
    TOPICS = "subscribe(topics)"
    PATTERN = "subscribe(pattern=)"
    ASSIGNED = "assign()"


class Subscriptions:
    """The one place that says what is read, and from where on."""

    def __init__(self) -> None:
        self.mode = SubscriptionMode.NOTHING
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.revision = 0
        """Changes with the topics: what a group was told before is out of date."""
        self._partitions: dict[TopicPartition, AssignedPartition] = {}

    @property
    def is_automatic(self) -> bool:
        """Whether a group decides which partitions are read."""
        return self.mode in (SubscriptionMode.TOPICS, SubscriptionMode.PATTERN)

    def subscribe(self, topics: Iterable[str]) -> None:
        """These topics instead of those before."""
        self._enter(SubscriptionMode.TOPICS)
        self._want(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        self._enter(SubscriptionMode.PATTERN)
        self.pattern = pattern
        self._want(frozenset())

    def matched(self, names: Iterable[str]) -> bool:
        """The topics there are, as far as the pattern takes them; whether that is news."""
        assert self.pattern is not None
        found = frozenset(name for name in names if self.pattern.search(name))
        changed = found != self.topics
        self._want(found)
        return changed

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions, no group asked; those that were there keep their positions."""
        self._enter(SubscriptionMode.ASSIGNED)
        self.replace(partitions)

    def clear(self) -> None:
        self.mode = SubscriptionMode.NOTHING
        self.pattern = None
        self.topics = frozenset()
        self.revision += 1
        self._partitions = {}

    def replace(self, partitions: Collection[TopicPartition]) -> None:
        """The assignment is now this; new partitions have no position yet."""
        for gone in self._partitions.keys() - set(partitions):
            self._partitions[gone].version += 1  # what is still on its way has no home
        self._partitions = {
            tp: self._partitions.get(tp) or AssignedPartition(tp) for tp in partitions
        }

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        return frozenset(self._partitions)

    def __getitem__(self, tp: TopicPartition) -> AssignedPartition:
        try:
            return self._partitions[tp]
        except KeyError:
            raise UserError(
                f"{tp} is not assigned to this consumer; what is: consumer.assignment()"
            ) from None

    def get(self, tp: TopicPartition) -> AssignedPartition | None:
        return self._partitions.get(tp)

    def __iter__(self) -> Iterator[AssignedPartition]:
        return iter(list(self._partitions.values()))

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def fault(self) -> Exception | None:
        """Why some partition cannot be read until the user says where from."""
        return next((part.fault for part in self if part.phase is PositionPhase.STUCK), None)

    def positions(self) -> Mapping[TopicPartition, AssignedPartition]:
        """The partitions that have a position."""
        return {part.tp: part for part in self if part.is_placed}

    def _enter(self, mode: SubscriptionMode) -> None:
        if self.mode not in (SubscriptionMode.NOTHING, mode):
            raise UserError(
                f"{mode.value} after {self.mode.value}: a consumer reads in one of these ways; "
                "call unsubscribe() first"
            )
        self.mode = mode

    def _want(self, topics: frozenset[str]) -> None:
        if topics != self.topics:
            self.topics = topics
            self.revision += 1
