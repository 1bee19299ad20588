"""Committed offsets: kept, pending in transactions, read."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.records import Committed, OffsetChanged
from ottla.model.ids import NO_PRODUCER, ProducerId

ONE, TWO = ProducerId(1), ProducerId(2)


def put(offsets: Offsets, offset: int | None, at: int, producer: ProducerId = NO_PRODUCER) -> None:
    committed = None if offset is None else Committed(offset)
    offsets.apply(OffsetChanged("g", "t", 0, committed), at, producer)


def got(offsets: Offsets) -> int | None:
    found = offsets.get("g", "t", 0)
    return None if found is None else found.offset


@pytest.mark.spec("GRP-62", "GRP-65")
def test_the_last_commit_counts_until_it_is_taken_away() -> None:
    offsets = Offsets()
    assert got(offsets) is None
    put(offsets, 5, 0)
    put(offsets, 3, 1)
    assert (got(offsets), offsets.groups()) == (3, ["g"])
    put(offsets, None, 2)
    assert (got(offsets), offsets.groups()) == (None, [])


@pytest.mark.spec("GRP-66")
def test_a_transaction_counts_when_it_is_committed_and_never_when_it_is_aborted() -> None:
    offsets = Offsets()
    put(offsets, 5, 0, ONE)
    put(offsets, 9, 1, TWO)
    assert got(offsets) is None
    assert offsets.is_pending("g", "t", 0)
    offsets.end_transaction(TWO, committed=False)
    offsets.end_transaction(ONE, committed=True)
    assert got(offsets) == 5
    assert not offsets.is_pending("g", "t", 0)
    offsets.end_transaction(ONE, committed=True)  # a marker of a transaction without offsets


@pytest.mark.spec("GRP-63", "GRP-66")
def test_of_a_transaction_and_a_plain_commit_the_later_record_wins() -> None:
    offsets = Offsets()
    put(offsets, 5, 0, ONE)
    put(offsets, 7, 1)
    offsets.end_transaction(ONE, committed=True)
    assert got(offsets) == 7
    put(offsets, 8, 3, ONE)
    offsets.end_transaction(ONE, committed=True)
    assert got(offsets) == 8


def test_a_transaction_may_take_an_offset_away() -> None:
    offsets = Offsets()
    put(offsets, 5, 0)
    put(offsets, None, 1, ONE)
    assert offsets.pending_groups() == {"g"}
    offsets.end_transaction(ONE, committed=True)
    assert got(offsets) is None
