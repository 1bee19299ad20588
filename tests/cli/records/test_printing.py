from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

import ottla
from ottla.cli.records.printing import PrintOptions, print_all
from ottla.cli.records.ranges import Batch
from ottla.client.consumer.record import Record
from ottla.model.ids import TopicPartition
from tests.fakes.manual_time import ManualClock


class Commits:
    """Notes what is committed, and how."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[TopicPartition, int]]] = []

    def commit(self, offsets: dict[TopicPartition, int], timeout: float) -> None:
        assert timeout > 0, "the end of a command is bounded"
        self.said.append(("commit", dict(offsets)))

    def commit_async(self, offsets: dict[TopicPartition, int]) -> None:
        self.said.append(("async", dict(offsets)))


def batch(*values: bytes, first: int = 0) -> Batch:
    return [Record("t", 0, first + at, 0, 0, None, value) for at, value in enumerate(values)]


def consumer(commits: Commits) -> ottla.Consumer[bytes, bytes]:
    return cast("ottla.Consumer[bytes, bytes]", commits)


def value(record: Record[bytes, bytes]) -> bytes:
    return record.value or b""


HERE = TopicPartition("t", 0)


def test_what_is_wanted_is_printed_and_what_was_read_committed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    commits, told = Commits(), list[int]()
    showing = PrintOptions(value, accepts=lambda record: record.value != b"b")
    batches = [batch(b"a", b"b"), [], batch(b"c", first=2)]
    count = print_all(batches, showing, ManualClock(0), commits=consumer(commits), tell=told.append)
    assert count == 2
    assert capfd.readouterr().out == "ac"
    assert commits.said == [("async", {HERE: 2}), ("async", {HERE: 3}), ("commit", {HERE: 3})]
    assert told == [2, 2, 3], "how many were read, shown or not"


def test_enough_is_enough_and_the_rest_stays_uncommitted() -> None:
    commits = Commits()
    showing = PrintOptions(value, most=2)
    batches = [batch(b"a", b"b", b"c")]
    assert print_all(batches, showing, ManualClock(0), commits=consumer(commits)) == 2
    assert commits.said == [("commit", {HERE: 2})]


def test_an_interrupt_is_a_good_end() -> None:
    commits = Commits()

    def interrupted() -> Iterator[Batch]:
        yield batch(b"a")
        raise KeyboardInterrupt

    assert (
        print_all(interrupted(), PrintOptions(value), ManualClock(0), commits=consumer(commits))
        == 1
    )
    assert commits.said[-1] == ("commit", {HERE: 1})


def test_silence_that_lasts_is_the_end() -> None:
    clock = ManualClock()

    def silent() -> Iterator[Batch]:
        yield batch(b"a")
        for _ in range(10):
            clock.ns += 300_000_000
            yield []
        raise AssertionError("it should have stopped")

    assert print_all(silent(), PrintOptions(value, silence_ms=1000), clock) == 1
