"""Whether a batch was rejected by the log, or before it reached the log.

Pure. The reply contains the log start offset only if the log rejected the batch.
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


class VerificationFailed(KafkaError):
    """The transaction coordinator rejected the batch; the log was not involved."""


def refused_by_log(refusal: KafkaError, records: bytes | memoryview) -> bool:
    """Whether a log refused this set; one that is no single batch never gets there."""
    return (
        refusal.code in BY_LOG
        and not isinstance(refusal, VerificationFailed)
        and _is_one_batch(records)
    )


def _is_one_batch(records: bytes | memoryview) -> bool:
    """Whether this is one whole batch of the current format, whatever is in it."""
    if len(records) < HEADER_SIZE:
        return False
    header = read_header(records)
    return header.magic == CURRENT_MAGIC and header.length + OVERHEAD == len(records)
