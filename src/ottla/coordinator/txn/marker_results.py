"""What the result of writing a transaction's markers means, and when to try again.

Pure. A result belongs to the partition that should take the marker. It never says anything about
the coordinator's own partition of `__transaction_state`: whether that one is loading, or led
elsewhere, is asked of the coordinator's `Runtime`, and only that ends the retries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

FIRST_RETRY_MS: Final = 50
LAST_RETRY_MS: Final = 1_000
"""The longest pause between two attempts: bounds how late a partition that is back gets its
marker, and the work that partitions out of reach cause meanwhile."""

MARKER_TAKEN: Final = frozenset(
    {
        ErrorCode.none,
        # A newer producer epoch writes there. That is possible only after this transaction ended
        # in that partition: its id gets no newer epoch while a decision is being carried out.
        ErrorCode.invalid_producer_epoch,
    }
)


def missing_markers(
    results: Mapping[TopicPartition, ErrorCode], is_deleted: Callable[[TopicPartition], bool]
) -> dict[TopicPartition, ErrorCode]:
    """The partitions that still need their marker, each with the reason.

    Any refusal is retried, whoever's it is. A partition is done with only when it has a marker or
    its topic is deleted; UNKNOWN_TOPIC_OR_PARTITION alone does not say that, because a broker
    that has just started gives it too.
    """
    return {
        partition: code
        for partition, code in results.items()
        if code not in MARKER_TAKEN and not is_deleted(partition)
    }


def retry_delay_ms(failures: int) -> int:
    """How long to wait after so many failed attempts in a row."""
    return min(LAST_RETRY_MS, FIRST_RETRY_MS << min(failures - 1, 16))


def is_logged(failures: int) -> bool:
    """Whether this failure is worth a log line: the 1st, 2nd, 4th, 8th and so on."""
    return failures & (failures - 1) == 0
