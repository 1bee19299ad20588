"""Which transaction markers are missing after an attempt, and when to retry.

Pure. A result belongs to the partition of the marker. It never concerns the coordinator's own
partition of `__transaction_state`: whether that one is loading, or led by another broker, is
checked in the coordinator's `Runtime`, and only that ends the retries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

FIRST_RETRY_MS: Final = 50
LAST_RETRY_MS: Final = 1_000
"""The longest pause between two attempts: bounds how late a partition that is available again gets
its marker, and the work that unavailable partitions cause."""

MARKER_TAKEN: Final = frozenset(
    {
        ErrorCode.none,
        # The partition has a newer producer epoch. That is possible only after this transaction
        # ended in that partition: its id gets no newer epoch while a decision is being executed.
        ErrorCode.invalid_producer_epoch,
    }
)


def missing_markers(
    results: Mapping[TopicPartition, ErrorCode], deleted: Collection[TopicPartition] = ()
) -> dict[TopicPartition, ErrorCode]:
    """The partitions that still need their marker, each with the error.

    Every error is retried. A partition is complete only when it has a marker or its topic is
    deleted; UNKNOWN_TOPIC_OR_PARTITION alone does not mean that, because a broker that has just
    started returns it too.
    """
    return {
        partition: code
        for partition, code in results.items()
        if code not in MARKER_TAKEN and partition not in deleted
    }


def retry_delay_ms(failures: int) -> int:
    """How long to wait after so many failed attempts in a row."""
    return min(LAST_RETRY_MS, FIRST_RETRY_MS << min(failures - 1, 16))


def is_logged(failures: int) -> bool:
    """Whether this failure is worth a log line: the 1st, 2nd, 4th, 8th and so on."""
    return failures & (failures - 1) == 0
