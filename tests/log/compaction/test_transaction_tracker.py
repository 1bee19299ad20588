"""Promises of `ottla.log.compaction.batch_filter`."""

from __future__ import annotations

import pytest

from ottla.log.compaction.batch_filter import TransactionTracker
from ottla.log.index.txn_index import AbortedTxn

pytestmark = pytest.mark.spec("LOG-74")

ABORTED = AbortedTxn(producer_id=7, first_offset=10, last_offset=20, last_stable_offset=21)


def test_data_of_an_aborted_transaction_may_go_and_only_that() -> None:
    trail = TransactionTracker([ABORTED])
    assert trail.data(7, 5) is False  # an earlier transaction of the same producer
    assert trail.marker(7, 6, commit=True) is False
    assert trail.data(8, 9) is False
    assert trail.data(7, 12) is True
    assert trail.marker(7, 20, commit=False) is False
    assert trail.data(7, 25) is False  # and a later one


def test_a_marker_stays_until_no_data_of_its_transaction_is_left() -> None:
    with_data, without = TransactionTracker([ABORTED]), TransactionTracker([ABORTED])
    with_data.data(7, 12)
    assert with_data.marker(7, 20, commit=False) is False
    assert without.marker(7, 20, commit=False) is True


@pytest.mark.parametrize("commit", [True, False])
def test_each_transaction_of_a_producer_is_judged_by_its_own_data(commit: bool) -> None:
    trail = TransactionTracker([])
    trail.data(7, 1)
    assert trail.marker(7, 2, commit=commit) is False
    assert trail.marker(7, 3, commit=commit) is True


def test_the_index_keeps_an_aborted_transaction_as_long_as_its_data_is_there() -> None:
    trail = TransactionTracker([ABORTED, ABORTED._replace(producer_id=8)])
    trail.data(7, 12)
    trail.marker(7, 20, commit=False)
    trail.marker(8, 21, commit=False)
    assert trail.take_retained() == [ABORTED]
    assert trail.take_retained() == []


def test_an_aborted_transaction_listed_by_several_segments_counts_once() -> None:
    trail = TransactionTracker([ABORTED, ABORTED])
    assert trail.data(7, 10) is True
    trail.marker(7, 20, commit=False)
    assert trail.data(7, 30) is False
    assert trail.take_retained() == [ABORTED]
