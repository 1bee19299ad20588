"""Whether a batch was rejected by the log, or before it reached the log; what its producer is told.

Pure. The reply contains the log start offset only if the log rejected the batch.
"""

from __future__ import annotations

from typing import Final

from ottla.log.validate import MalformedBatch, RefusedRecords
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

    def __init__(self, code: ErrorCode) -> None:
        unknown = code is ErrorCode.invalid_txn_state
        super().__init__(code, "Partition was not added to the transaction" if unknown else None)


def refused_by_log(refusal: KafkaError, records: bytes | memoryview) -> bool:
    """Whether a log refused this set; one that is no single batch never gets there."""
    return (
        refusal.code in BY_LOG
        and not isinstance(refusal, VerificationFailed)
        and _is_one_batch(records)
    )


def message_for_producer(refusal: KafkaError) -> str | None:
    """The message in a produce reply. As in Kafka most codes come without one."""
    if isinstance(refusal, RefusedRecords | MalformedBatch | VerificationFailed):
        return refusal.message
    return refusal.message if refusal.code is ErrorCode.message_too_large else None


def _is_one_batch(records: bytes | memoryview) -> bool:
    """Whether this is one whole batch of the current format, whatever is in it."""
    if len(records) < HEADER_SIZE:
        return False
    header = read_header(records)
    return header.magic == CURRENT_MAGIC and header.length + OVERHEAD == len(records)
