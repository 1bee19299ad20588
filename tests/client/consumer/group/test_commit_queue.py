from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.errors import CommitFailed
from ottla.client.consumer.group.commit_queue import Commit, CommitQueue, classify, merge_offsets
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.offsets import OffsetAndMetadata
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


class Book:
    """Commits by name, and what became of them."""

    def __init__(self) -> None:
        self.queue = CommitQueue()
        self.done: list[tuple[str, Exception | None]] = []

    def ask(
        self, name: str, offset: int, tp: TopicPartition = ONE, *, is_retried: bool = False
    ) -> None:
        offsets = {tp: OffsetAndMetadata(offset)}
        self.queue.add(Commit(offsets, lambda error: self.done.append((name, error)), is_retried))


@pytest.mark.spec("CON-44")
def test_what_waits_goes_out_together_the_latest_of_each_partition() -> None:
    book = Book()
    book.ask("a", 1)
    book.ask("b", 5, TWO)
    book.ask("c", 2)
    commits = book.queue.next()
    assert {tp: place.offset for tp, place in merge_offsets(commits).items()} == {ONE: 2, TWO: 5}
    assert book.queue.next() == []


@pytest.mark.spec("CON-43", "CON-44", "CON-45")
def test_only_those_who_insist_are_tried_again_and_before_later_ones() -> None:
    book, error = Book(), OSError("gone")
    book.ask("asynchronous", 1)
    book.ask("insists", 2, is_retried=True)
    commits = book.queue.next()
    book.ask("later", 3)
    book.queue.fail(commits, error, retriable=True)
    assert book.done == [("asynchronous", error)]
    (again,) = book.queue.next()
    assert (again.offsets[ONE].offset, again.failures) == (2, 1)
    assert [each.offsets[ONE].offset for each in book.queue.next()] == [3]


@pytest.mark.spec("CON-43")
def test_a_refusal_for_good_is_told_to_everybody() -> None:
    book, error = Book(), CommitFailed(ErrorCode.illegal_generation)
    book.ask("a", 1)
    book.ask("b", 2, is_retried=True)
    book.queue.fail(book.queue.next(), error, retriable=False)
    assert book.done == [("a", error), ("b", error)]
    assert len(book.queue) == 0


def test_what_will_never_be_sent_is_told_so() -> None:
    book, error = Book(), TimeoutError()
    book.ask("a", 1)
    book.queue.give_up(error)
    assert book.done == [("a", error)]


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), max_size=12))
def test_the_last_commit_that_landed_is_never_older_than_one_before(
    asked: list[tuple[int, bool, bool]],
) -> None:
    """Commits ask for growing offsets; some requests fail in passing. What lands only grows."""
    book, on_committed = Book(), list[int]()
    for number, (_, is_retried, _) in enumerate(asked):
        book.ask(str(number), number, is_retried=is_retried)
    fails = iter([failing for _, _, failing in asked])
    while commits := book.queue.next():
        if next(fails, False):
            book.queue.fail(commits, OSError(), retriable=True)
        else:
            on_committed.append(merge_offsets(commits)[ONE].offset)
    assert on_committed == sorted(on_committed)


@pytest.mark.spec("CON-43")
@pytest.mark.parametrize(
    ("codes", "after", "kind"),
    [
        ([ErrorCode.none, ErrorCode.none], ErrorReaction.GO_ON, None),
        ([ErrorCode.none, ErrorCode.illegal_generation], ErrorReaction.JOIN_ANEW, CommitFailed),
        ([ErrorCode.rebalance_in_progress], ErrorReaction.JOIN_AGAIN, CommitFailed),
        ([ErrorCode.not_coordinator], ErrorReaction.FIND_COORDINATOR, Exception),
        (
            [ErrorCode.coordinator_load_in_progress, ErrorCode.offset_metadata_too_large],
            ErrorReaction.GIVE_UP,
            Exception,
        ),
    ],
)
def test_the_worst_code_decides(
    codes: list[ErrorCode], after: ErrorReaction, kind: type[Exception] | None
) -> None:
    found, error = classify(dict(zip((ONE, TWO), codes, strict=False)))
    assert found is after
    assert error is None if kind is None else isinstance(error, kind)
