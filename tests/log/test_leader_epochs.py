"""Promises of `ottla.log.leader_epochs`."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.directories.checkpoint_file import BadCheckpoint
from ottla.log.leader_epochs import EpochStart, LeaderEpochs, decode

HISTORY = [EpochStart(1, 0), EpochStart(3, 10), EpochStart(4, 25)]


@pytest.mark.spec("LOG-16")
def test_the_file_is_a_version_a_count_and_a_line_for_each_epoch() -> None:
    epochs = LeaderEpochs()
    for epoch, start in HISTORY:
        epochs.assign(epoch, start)
    assert epochs.to_save(log_end=30) == b"0\n3\n1 0\n3 10\n4 25\n"


def test_what_is_saved_is_not_saved_again() -> None:
    epochs = LeaderEpochs(HISTORY)
    assert epochs.to_save(30) is None
    epochs.assign(5, 30)
    assert epochs.to_save(30) is None  # nothing was written under it yet
    assert epochs.to_save(31) == b"0\n4\n1 0\n3 10\n4 25\n5 30\n"
    assert epochs.to_save(31) is None


def test_while_the_last_epoch_has_written_nothing_the_others_are_saved_once() -> None:
    epochs = LeaderEpochs(HISTORY)
    epochs.assign(5, 30)
    epochs.assign(6, 31)
    assert epochs.to_save(31) == b"0\n4\n1 0\n3 10\n4 25\n5 30\n"
    assert epochs.to_save(31) is None


def test_whatever_changes_the_history_has_it_saved_again() -> None:
    history = LeaderEpochs(saved=False)
    assert history.to_save(0) is None
    history.assign(1, 0)
    history.assign(3, 10)
    assert history.to_save(10) == b"0\n1\n1 0\n", "the last epoch has written nothing yet"
    assert history.to_save(11) == b"0\n2\n1 0\n3 10\n", "now it has"
    assert history.to_save(12) is None
    history.truncate_from_start(5)
    assert history.to_save(12) == b"0\n2\n1 5\n3 10\n"
    history.truncate_from_end(10)
    assert history.to_save(10) == b"0\n1\n1 5\n"
    history.clear()
    assert history.to_save(10) == b"0\n0\n"
    assert history.to_save(10) is None


def test_a_history_that_was_never_saved_is_even_when_it_is_empty() -> None:
    assert LeaderEpochs(saved=False).to_save(0) is None  # nothing was ever written at all
    assert LeaderEpochs(saved=False).to_save(5) == b"0\n0\n"


@pytest.mark.spec("LOG-96")
@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),  # a follower without epochs
        (0, (0, 0)),  # older than anything left
        (1, (1, 10)),
        (2, (1, 10)),
        (3, (3, 25)),
        (4, (4, 99)),
        (5, (-1, -1)),  # newer than anything known
    ],
)
def test_an_epoch_ends_where_the_next_begins(asked: int, answer: tuple[int, int]) -> None:
    assert LeaderEpochs(HISTORY).end_offset(asked, log_end=99) == answer


def test_without_a_history_nothing_is_known() -> None:
    assert LeaderEpochs().end_offset(0, log_end=5) == (-1, -1)
    assert LeaderEpochs().latest == -1
    assert LeaderEpochs().epoch_of(0) == -1


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (9, 1), (10, 3), (24, 3), (25, 4), (99, 4)])
def test_every_offset_has_the_epoch_it_was_written_under(offset: int, epoch: int) -> None:
    assert LeaderEpochs(HISTORY).epoch_of(offset) == epoch


def test_a_new_epoch_drops_what_contradicts_it() -> None:
    epochs = LeaderEpochs(HISTORY)
    epochs.assign(4, 12)  # the same epoch, but earlier: we were truncated and told otherwise
    assert epochs.entries == [EpochStart(1, 0), EpochStart(3, 10), EpochStart(4, 12)]
    epochs.assign(4, 20)
    assert epochs.entries[-1] == EpochStart(4, 12)
    epochs.assign(6, 10)  # an epoch that wrote nothing
    assert epochs.entries == [EpochStart(1, 0), EpochStart(6, 10)]
    assert epochs.latest == 6


@pytest.mark.spec("LOG-35")
def test_epochs_outside_the_log_are_dropped() -> None:
    epochs = LeaderEpochs(HISTORY)
    epochs.truncate_from_end(25)
    assert epochs.entries == HISTORY[:2]
    assert epochs.latest == 3
    epochs.truncate_from_start(12)
    assert epochs.entries == [EpochStart(3, 12)]
    epochs.truncate_from_start(12)
    epochs.truncate_from_start(5)
    assert epochs.entries == [EpochStart(3, 12)]
    epochs.clear()
    assert len(epochs) == 0
    assert epochs.latest == -1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=20))
def test_epochs_and_their_starts_always_rise(assigned: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs()
    for epoch, start in assigned:
        epochs.assign(epoch, start)
        pairs = epochs.entries
        assert all(a.epoch < b.epoch for a, b in itertools.pairwise(pairs))
        assert all(a.start_offset < b.start_offset for a, b in itertools.pairwise(pairs))
        assert epochs.latest == epoch


@pytest.mark.parametrize(
    "content", [b"0\n2\n3 10\n1 20\n", b"0\n2\n1 10\n2 10\n", b"0\n1\n1 x\n", b"garbage\n"]
)
def test_a_history_that_does_not_rise_is_refused(content: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        decode(content)
