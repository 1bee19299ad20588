"""Who refused a record set."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode, KafkaError
from ottla.replica.refusals import VerificationFailed, refused_by_log
from tests.raw_requests import batch

ONE = batch("a", "b")


@pytest.mark.parametrize("code", [ErrorCode.invalid_record, ErrorCode.out_of_order_sequence_number])
def test_what_is_wrong_with_one_whole_batch_is_said_by_the_log(code: ErrorCode) -> None:
    assert refused_by_log(KafkaError(code), ONE)
    assert not refused_by_log(VerificationFailed(code), ONE), "the coordinator said it"


@pytest.mark.parametrize(
    "records", [b"", b"junk", ONE[:-1], ONE + ONE, ONE[:16] + b"\1" + ONE[17:]]
)
def test_what_is_no_single_batch_never_gets_to_the_log(records: bytes) -> None:
    assert not refused_by_log(KafkaError(ErrorCode.invalid_record), records)


@pytest.mark.parametrize("code", [ErrorCode.message_too_large, ErrorCode.not_enough_replicas])
def test_other_refusals_are_not_the_logs(code: ErrorCode) -> None:
    assert not refused_by_log(KafkaError(code), ONE)
