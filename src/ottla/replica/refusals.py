"""Who refused a record set: the log that looked at it, or somebody before it got there.

Pure. A refusal by the log is told together with where the log begins, any other is not.
"""

from __future__ import annotations

from typing import Final

from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.records.batch import CURRENT_MAGIC
from ottla.protocol.records.header import HEADER_SIZE, OVERHEAD, read_header

BY_LOG: Final = frozenset(
    {
        ErrorCode.invalid_record,
        ErrorCode.invalid_timestamp,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.out_of_order_sequence_number,
    }
)


class NotAdmitted(KafkaError):
    """The transaction coordinator's refusal: the log was never asked."""


def refused_by_log(refusal: KafkaError, records: bytes | memoryview) -> bool:
    """Whether a log refused this set; one that is no single batch never gets there."""
    return (
        refusal.code in BY_LOG and not isinstance(refusal, NotAdmitted) and _is_one_batch(records)
    )


def _is_one_batch(records: bytes | memoryview) -> bool:
    """Whether this is one whole batch of the current format, whatever is in it."""
    if len(records) < HEADER_SIZE:
        return False
    header = read_header(records)
    return header.magic == CURRENT_MAGIC and header.length + OVERHEAD == len(records)
