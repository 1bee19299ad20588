"""What marker results mean, whichever partition they come from."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.completion import (
    FIRST_RETRY_MS,
    LAST_RETRY_MS,
    MARKER_TAKEN,
    is_logged,
    missing_markers,
    retry_delay_ms,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

HERE, GONE = TopicPartition("here", 0), TopicPartition("gone", 0)


@pytest.mark.spec("TXN-38")
@pytest.mark.parametrize("code", ErrorCode)
def test_no_refusal_stands_for_a_marker_while_the_topic_exists(code: ErrorCode) -> None:
    missing = missing_markers({HERE: code})
    assert missing == ({} if code in MARKER_TAKEN else {HERE: code})


def test_only_a_deleted_topic_needs_no_marker() -> None:
    unknown = ErrorCode.unknown_topic_or_partition
    missing = missing_markers({HERE: unknown, GONE: unknown}, {GONE})
    assert missing == {HERE: unknown}


def test_pauses_grow_up_to_a_bound_and_never_end() -> None:
    pauses = [retry_delay_ms(failures) for failures in range(1, 100)]
    assert pauses[0] == FIRST_RETRY_MS
    assert pauses == sorted(pauses)
    assert set(pauses[10:]) == {LAST_RETRY_MS}


def test_a_long_row_of_failures_is_logged_ever_more_rarely() -> None:
    assert [n for n in range(1, 1_000) if is_logged(n)] == [2**n for n in range(10)]
