"""The ledger's entry, the names of transactions, and who may abort what."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.spark.commit_decisions import (
    REMEMBERED_RUNS,
    AlreadyPast,
    DecidedTwice,
    Entry,
    Sink,
    Superseded,
    abandoned_ids,
    check_turn,
    decided,
    from_bytes,
    owed_commits,
    taken_over,
    to_bytes,
)

SINK = Sink("7f0c-11")
ONE = PreparedTransaction("7f0c-11-0-1-0-0.0", 7, 3)


@given(
    st.builds(
        Entry,
        st.text(),
        st.integers(1, 99),
        st.integers(-1, 2**40),
        st.lists(st.just(ONE), max_size=3).map(tuple),
        st.lists(st.text(), max_size=3).map(tuple),
        st.booleans(),
    )
)
def test_an_entry_survives_the_topic(entry: Entry) -> None:
    assert from_bytes(to_bytes(entry)) == entry


def test_an_entry_of_a_later_format_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="format 2"):
        from_bytes(b'{"format": 2}')


def test_names_say_whose_a_transaction_is() -> None:
    id = SINK.transactional_id(12, 3, "0.1")
    assert id == "7f0c-11-0-12-3-0.1"
    assert SINK.run_epoch(id) == 12
    assert SINK.run_epoch(SINK.transactional_id(12, 3, "0.1", 2)) == 12


@pytest.mark.parametrize(
    "id", ["7f0c-11-0", "7f0c-11-0-x-1-0.0", "other", "a7f0c-11-0-1-1-0.0", "7f0c-11-01-2-3-0.0"]
)
def test_names_of_others_are_not_taken_for_ours(id: str) -> None:
    assert SINK.run_epoch(id) is None


def test_the_first_run_begins_with_epoch_one_and_the_next_goes_on() -> None:
    first = taken_over(SINK, None, "a")
    assert first == Entry("a", 1)
    assert taken_over(SINK, first, "a") is first
    second = taken_over(SINK, decided(SINK, first, 5, [ONE]), "b")
    assert second == Entry("b", 2, 5, (ONE,), ("a",))


def test_a_run_that_was_superseded_is_remembered() -> None:
    entry = None
    for run in range(REMEMBERED_RUNS + 5):
        entry = taken_over(SINK, entry, str(run))
    assert entry is not None
    assert len(entry.past) == REMEMBERED_RUNS
    with pytest.raises(Superseded):
        taken_over(SINK, entry, str(REMEMBERED_RUNS))


def test_a_decision_belongs_to_one_run_and_one_batch() -> None:
    entry = decided(SINK, Entry("a", 1), 3, [ONE])
    assert entry.is_decided(3)
    assert not entry.is_decided(4)
    assert decided(SINK, entry, 3, [ONE]) is entry
    assert decided(SINK, taken_over(SINK, entry, "b"), 3, []).run == "b"
    check_turn(SINK, entry, "a", 3)
    check_turn(SINK, entry, "a", 4)
    with pytest.raises(Superseded):
        check_turn(SINK, entry, "b", 4)
    with pytest.raises(AlreadyPast):
        check_turn(SINK, entry, "a", 2)


def test_a_run_cannot_decide_a_batch_twice_with_other_transactions() -> None:
    with pytest.raises(DecidedTwice, match=r"ottla\.sink"):
        decided(SINK, decided(SINK, Entry("a", 1), 3, [ONE]), 3, [])


def test_what_a_predecessor_decided_is_owed_and_ones_own_is_not() -> None:
    own = decided(SINK, Entry("a", 1), 3, [ONE])
    assert owed_commits(own) == ()
    assert owed_commits(taken_over(SINK, own, "b")) == (ONE,)


def test_only_what_can_never_be_decided_is_abandoned() -> None:
    entry = Entry("b", 2, 3, (ONE,), ("a",))
    earlier, own, later = (SINK.transactional_id(epoch, 9, "0.0") for epoch in (1, 2, 3))
    found = [earlier, own, later, "somebody else's"]
    assert abandoned_ids(SINK, entry, found, own=False) == [earlier]
    assert abandoned_ids(SINK, entry, found, own=True) == [earlier, own]


def test_refusals_say_what_happened_also_after_a_pickle() -> None:
    for refusal in (Superseded("q", "a", "b"), AlreadyPast("q", 1, 2), DecidedTwice("q", 1)):
        assert str(pickle.loads(pickle.dumps(refusal))) == str(refusal)
