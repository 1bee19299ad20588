"""Exceptions of the consumer.

Users catch these by class; all others are in `ottla.client.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import TopicPartition

__all__ = [
    "CommitFailed",
    "ConcurrentUse",
    "LogTruncated",
    "NoOffset",
    "OffsetOutOfRange",
    "Wakeup",
]


class CommitFailed(KafkaError):
    """The group has rebalanced: uncommitted records will be read again by another member."""


class NoOffset(KafkaError):
    """Nothing is committed, and `auto.offset.reset` is none."""

    def __init__(self, partitions: frozenset[TopicPartition]) -> None:
        named = ", ".join(map(str, sorted(partitions)))
        super().__init__(
            ErrorCode.offset_out_of_range,
            f"no committed offset for {named}, and auto.offset.reset=none: seek first",
        )
        self.partitions = partitions


class OffsetOutOfRange(KafkaError):
    """The position is outside the log, and `auto.offset.reset` is none."""

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        named = ", ".join(f"{tp} at {offset}" for tp, offset in sorted(positions.items()))
        super().__init__(
            ErrorCode.offset_out_of_range,
            f"offset out of range: {named}, and auto.offset.reset=none: seek first",
        )
        self.positions = dict(positions)


class LogTruncated(KafkaError):
    """Records that were read are no longer in the log, and `auto.offset.reset` is none."""

    def __init__(self, partition: TopicPartition, position: int, end: int) -> None:
        super().__init__(
            ErrorCode.offset_out_of_range,
            f"{partition} was truncated to {end}, below the position {position}; "
            "auto.offset.reset=none: seek first",
        )
        self.partition = partition
        self.position = position
        self.end = end
        """The end of the common part of the old and the new log; -1 if unknown."""


class Wakeup(Exception):
    """`wakeup()` was called: leave the poll loop."""


class ConcurrentUse(UserError):
    """Two threads, or two tasks, used one consumer at the same time."""
