"""What a consumer reads: topics, a pattern, or partitions assigned by the user.

Owns the mode (the three may not be mixed) and the assigned partitions. Pure: never sends a request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Protocol

from ottla.client.consumer.position.partition_position import AssignedPartition, PositionPhase
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition


class TopicPattern(Protocol):
    """A compiled regular expression, of `re` or a library like it."""

    def search(self, string: str, /) -> object: ...


class SubscriptionMode(Enum):
    """How partitions are chosen."""

    NOTHING = "nothing"
    TOPICS = "subscribe(topics)"
    PATTERN = "subscribe(pattern=)"
    ASSIGNED = "assign()"


class Subscriptions:
    """The subscription and the assigned partitions with their positions."""

    def __init__(self) -> None:
        self.mode = SubscriptionMode.NOTHING
        self.topics: frozenset[str] = frozenset()
        self.pattern: TopicPattern | None = None
        self.revision = 0
        """Changes with the topics: the subscription sent to the group is then out of date."""
        self._partitions: dict[TopicPartition, AssignedPartition] = {}

    @property
    def is_automatic(self) -> bool:
        """Whether a group decides which partitions are read."""
        return self.mode in (SubscriptionMode.TOPICS, SubscriptionMode.PATTERN)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Replace the subscribed topics."""
        self._set_mode(SubscriptionMode.TOPICS)
        self._set_topics(frozenset(topics))

    def subscribe_pattern(self, pattern: TopicPattern) -> None:
        self._set_mode(SubscriptionMode.PATTERN)
        self.pattern = pattern
        self._set_topics(frozenset())

    def apply_pattern(self, names: Iterable[str]) -> bool:
        """Subscribe to the names that match the pattern; whether the topics changed."""
        assert self.pattern is not None
        matching = frozenset(name for name in names if self.pattern.search(name))
        changed = matching != self.topics
        self._set_topics(matching)
        return changed

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Set the partitions by hand; those already assigned keep their positions."""
        self._set_mode(SubscriptionMode.ASSIGNED)
        self.replace(partitions)

    def clear(self) -> None:
        self.mode = SubscriptionMode.NOTHING
        self.pattern = None
        self.topics = frozenset()
        self.revision += 1
        self._partitions = {}

    def replace(self, partitions: Collection[TopicPartition]) -> None:
        """Replace the assignment; new partitions have no position yet."""
        for removed in self._partitions.keys() - set(partitions):
            self._partitions[removed].version += 1  # responses still in flight are discarded
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
                f"{tp} is not assigned to this consumer; see consumer.assignment()"
            ) from None

    def get(self, tp: TopicPartition) -> AssignedPartition | None:
        return self._partitions.get(tp)

    def __iter__(self) -> Iterator[AssignedPartition]:
        return iter(list(self._partitions.values()))

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def fault(self) -> Exception | None:
        """Why a partition cannot be read until the user seeks."""
        return next((part.fault for part in self if part.phase is PositionPhase.STUCK), None)

    def positions(self) -> Mapping[TopicPartition, AssignedPartition]:
        """The partitions that have a position."""
        return {part.tp: part for part in self if part.has_position}

    def _set_mode(self, mode: SubscriptionMode) -> None:
        if self.mode not in (SubscriptionMode.NOTHING, mode):
            raise UserError(
                f"{mode.value} after {self.mode.value}: they cannot be combined; "
                "call unsubscribe() first"
            )
        self.mode = mode

    def _set_topics(self, topics: frozenset[str]) -> None:
        if topics != self.topics:
            self.topics = topics
            self.revision += 1
