"""What will be known soon, and who hears of it when."""

from __future__ import annotations

import asyncio

import pytest

from ottla.coordinator.deferred_reply import Commit, DeferredReply, all_of, wait_for_commit
from ottla.model.errors import ErrorCode, KafkaError

E = ErrorCode


def test_whoever_waits_hears_of_it_in_the_call_that_settles_it_and_in_order() -> None:
    heard: list[tuple[str, int]] = []
    pending = DeferredReply[int]()
    pending.then(lambda value: heard.append(("first", value)))
    pending.then(lambda value: heard.append(("second", value)))
    assert heard == []
    pending.settle(7)
    assert heard == [("first", 7), ("second", 7)]
    pending.then(lambda value: heard.append(("late", value)))
    assert heard[2:] == [("late", 7)]


def test_a_waiter_that_fails_does_not_cost_the_others_their_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[int] = []
    pending = DeferredReply[int]()
    pending.then(lambda value: 1 // value)
    pending.then(heard.append)
    pending.settle(0)
    assert heard == [0]
    assert "ZeroDivisionError" in caplog.text


def test_it_is_settled_once() -> None:
    pending = DeferredReply[int]()
    pending.settle(1)
    with pytest.raises(AssertionError, match="more than once"):
        pending.settle(2)


async def test_it_can_be_awaited_and_whoever_gives_up_disturbs_nobody() -> None:
    pending = DeferredReply[int]()

    async def wait() -> int:
        return await pending

    patient, gone = (asyncio.ensure_future(wait()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    pending.settle(3)
    assert await patient == 3
    assert await wait() == 3
    assert gone.cancelled()


def test_several_are_committed_with_the_last_of_them_or_refused_by_the_first_refusal() -> None:
    for codes, expected in [
        ((E.none, E.none), E.none),
        ((E.none, E.not_coordinator), E.not_coordinator),
        ((E.not_coordinator, E.request_timed_out), E.not_coordinator),
    ]:
        heard: list[ErrorCode] = []
        commits = [Commit() for _ in codes]
        all_of(commits).then(heard.append)
        for commit, code in zip(commits, codes, strict=True):
            assert heard == []
            commit.settle(code)
        assert heard == [expected]


async def test_a_refusal_is_raised_to_whoever_awaits_the_commit() -> None:
    await wait_for_commit(None)
    good, bad = Commit(), Commit()
    good.settle(E.none)
    bad.settle(E.not_coordinator)
    await wait_for_commit(good)
    with pytest.raises(KafkaError) as refused:
        await wait_for_commit(bad)
    assert refused.value.code is E.not_coordinator
