"""What is tried again, after which pause, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.errors import ErrorCode, KafkaError, refusal
from ottla.client.retry import Backoff, Deadline, is_retriable, is_stale, retrying
from ottla.model.clock import MonoMs, WallMs
from tests.fakes.manual_time import ManualClock
from tests.fakes.virtual_loop import VirtualLoop


class Cluster:
    """Counts how often it was asked to look again."""

    def __init__(self) -> None:
        self.backoff = Backoff(100, 1_000, Random(1))
        self.asked: list[Iterable[str] | None] = []

    async def refresh(self, topics: Iterable[str] | None = None) -> None:
        self.asked.append(topics)


class LoopClock:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def mono_ns(self) -> int:
        return int(self._loop.time() * 1e9)

    def mono_ms(self) -> MonoMs:
        return MonoMs(int(self._loop.time() * 1e3))

    def wall_ms(self) -> WallMs:
        return WallMs(self.mono_ms())


@given(st.integers(1, 60), st.integers(0, 10_000), st.integers(0, 2**32))
def test_pauses_grow_to_their_bound_and_are_never_in_step(
    failures: int, first_ms: int, seed: int
) -> None:
    backoff = Backoff(first_ms, 20_000, Random(seed))
    ceiling = min(20_000, first_ms * 2 ** (failures - 1))
    assert ceiling * 0.8 - 1 <= backoff.after(failures) <= ceiling * 1.2 + 1
    assert backoff.after(0) == 0


def test_refusals_that_pass_and_brokers_out_of_reach_are_tried_again() -> None:
    assert is_retriable(refusal(ErrorCode.not_leader_or_follower))
    assert is_retriable(ConnectionError())
    assert is_retriable(TimeoutError())
    assert not is_retriable(refusal(ErrorCode.topic_authorization_failed))
    assert not is_retriable(ValueError())


def test_only_what_may_come_of_old_news_asks_for_new_ones() -> None:
    assert is_stale(refusal(ErrorCode.not_leader_or_follower))
    assert is_stale(ConnectionError())
    assert not is_stale(refusal(ErrorCode.coordinator_load_in_progress))


def test_a_deadline_passes() -> None:
    clock = ManualClock(1_000)
    deadline = Deadline(clock, 50)
    assert (deadline.left_ms, deadline.is_over) == (50, False)
    clock.ns += 60_000_000
    assert (deadline.left_ms, deadline.is_over) == (0, True)


def run_on_virtual_time(answers: list[BaseException | str], allowed_ms: int) -> tuple[str, Cluster]:
    loop = VirtualLoop()
    cluster = Cluster()

    async def what() -> str:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def main() -> str:
        return await retrying(cluster, what, Deadline(LoopClock(loop), allowed_ms), ["t"])

    try:
        return loop.run_until_complete(main()), cluster
    finally:
        loop.close()


def test_what_passes_is_tried_until_it_succeeds_and_news_are_asked_for() -> None:
    old = refusal(ErrorCode.not_leader_or_follower)
    busy = refusal(ErrorCode.coordinator_load_in_progress)
    result, cluster = run_on_virtual_time([old, busy, ConnectionError(), "done"], 60_000)
    assert result == "done"
    assert cluster.asked == [["t"], ["t"]]


def test_what_does_not_pass_is_told_at_once() -> None:
    with pytest.raises(KafkaError, match="topic_authorization_failed"):
        run_on_virtual_time([refusal(ErrorCode.topic_authorization_failed)], 60_000)


def test_when_time_is_up_the_last_error_is_told() -> None:
    failing: list[BaseException | str] = [ConnectionError("nobody there") for _ in range(100)]
    with pytest.raises(
        TimeoutError, match="timed out after 3000 ms; last error: nobody there"
    ) as told:
        run_on_virtual_time(failing, 3_000)
    assert isinstance(told.value.__cause__, ConnectionError)
