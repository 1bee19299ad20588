"""What can go wrong for a consumer and only for a consumer.

A user catches these by class; everything else is in `ottla.client.errors`.
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
    """The group has moved on: what was read since will be read again by somebody else."""


class NoOffset(KafkaError):
    """Nothing is committed, and `auto.offset.reset` is none."""

    def __init__(self, partitions: frozenset[TopicPartition]) -> None:
        named = ", ".join(map(str, sorted(partitions)))
        super().__init__(
            ErrorCode.offset_out_of_range,
            f"no committed offset for {named}, and auto.offset.reset is none: seek first",
        )
        self.partitions = partitions


class OffsetOutOfRange(KafkaError):
    """The position is outside the log, and `auto.offset.reset` is none."""

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        named = ", ".join(f"{tp} at {offset}" for tp, offset in sorted(positions.items()))
        super().__init__(
            ErrorCode.offset_out_of_range,
            f"out of range: {named}, and auto.offset.reset is none: seek first",
        )
        self.positions = dict(positions)


class LogTruncated(KafkaError):
    """Records that were read are no longer in the log, and `auto.offset.reset` is none."""

    def __init__(self, partition: TopicPartition, position: int, end: int) -> None:
        super().__init__(
            ErrorCode.offset_out_of_range,
            f"{partition} was truncated to {end}, below the position {position}; "
            "auto.offset.reset is none: seek first",
        )
        self.partition = partition
        self.position = position
        self.end = end
        """Where the log that was read and the log there is now part; -1: not known."""


class Wakeup(Exception):
    """`wakeup()` was called: leave the loop that polls."""


class ConcurrentUse(UserError):
    """Two threads, or two tasks, used one consumer at the same time."""
