"""What the checker says of leaders and of the logs of replicas."""

from __future__ import annotations

from ottla.protocol.records.batch import build, set_offsets
from ottla.protocol.records.record import NewRecord
from ottla.testing.history import Leads, check
from ottla.testing.history.replicas import differences


def batch(offset: int, *values: str, epoch: int = 0) -> bytes:
    content = bytearray(build([NewRecord(b"k", value.encode()) for value in values]))
    set_offsets(content, offset, epoch)
    return bytes(content)


def found(*events: Leads) -> list[str]:
    return [violation.detail for violation in check(events)]


def test_two_leaders_of_one_epoch_are_found() -> None:
    one, other = Leads(1, "t-0", 5, 10, 1), Leads(2, "t-0", 5, 10, 2)
    assert found(one, other) == ["1 and 2 both led in epoch 5"]
    assert found(one, Leads(2, "t-0", 6, 8, 2), Leads(2, "t-1", 5, 0, 3)) == []


def test_a_high_watermark_that_falls_within_an_epoch_is_found() -> None:
    events = [Leads(1, "t-0", 5, 10, 1), Leads(1, "t-0", 5, 9, 2)]
    assert found(*events) == ["broker 1 had 9 after 10 in epoch 5"]
    assert found(events[0], Leads(1, "t-0", 6, 9, 2)) == []


def test_equal_logs_have_no_differences_whatever_stands_above_the_end() -> None:
    log = batch(0, "a", "b") + batch(2, "c")
    assert list(differences({1: log, 2: log, 3: log})) == []
    longer = log + batch(3, "d")
    assert list(differences({1: log, 2: longer})) == []
    assert list(differences({1: log + batch(3, "e"), 2: longer}, 3)) == []


def test_a_batch_that_differs_in_any_byte_is_found() -> None:
    log = batch(0, "a") + batch(1, "b")
    of_another_epoch = batch(0, "a") + batch(1, "b", epoch=1)
    [difference] = differences({1: log, 2: log, 3: of_another_epoch})
    assert difference == "brokers 1 and 3 differ at offset 1 of 2, present: [True, True]"


def test_a_replica_that_ends_too_early_or_lacks_a_batch_is_found() -> None:
    whole = batch(0, "a") + batch(1, "b") + batch(2, "c")
    found = list(differences({1: whole, 2: batch(0, "a")}, 3))
    assert "broker 2 ends at 1, below 3" in found
    gap = batch(0, "a") + batch(2, "c")
    assert len(list(differences({1: whole, 2: gap}))) == 1


def test_a_log_whose_start_was_moved_is_compared_from_there() -> None:
    whole = batch(0, "a") + batch(1, "b") + batch(2, "c")
    assert list(differences({1: whole, 2: batch(1, "b") + batch(2, "c")})) == []


def test_what_lies_below_the_log_start_may_differ() -> None:
    log = batch(0, "a") + batch(1, "b")
    deleted_in_another_epoch = batch(0, "a", epoch=1) + batch(1, "b")
    assert len(list(differences({1: log, 2: deleted_in_another_epoch}))) == 1
    assert list(differences({1: log, 2: deleted_in_another_epoch}, start=1)) == []


def test_compacted_logs_have_equal_records_at_equal_offsets() -> None:
    whole = batch(0, "a") + batch(1, "b") + batch(2, "c")
    cleaned = batch(2, "c")
    assert list(differences({1: whole, 2: batch(0, "a") + cleaned}, compacted=True)) == []
    [difference] = differences({1: whole, 2: batch(1, "x") + cleaned}, compacted=True)
    assert "at offset 1" in difference
