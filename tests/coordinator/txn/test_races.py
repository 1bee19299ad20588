"""Between a decision and its completion the world moves: nothing is lost, stuck or told twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import pytest

from ottla.coordinator.deferred_reply import DeferredReply
from ottla.coordinator.txn.end_transaction import EndRequest
from ottla.coordinator.txn.markers import TransactionEnd
from ottla.coordinator.txn.service import ANSWER_WITHIN_MS, Ended
from ottla.coordinator.txn.state import Producer, TxnState
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.coordinator.txn.rig import ID, STATE, TxnSide, txn_side

E = ErrorCode


class Waiting:
    """Markers that are written when the test says so, and as it says; the first of them only."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self._first: DeferredReply[Mapping[TopicPartition, ErrorCode]] = DeferredReply()
        self._keys: list[TopicPartition] = []

    def write(
        self, marking: TransactionEnd, partitions: Iterable[TopicPartition]
    ) -> DeferredReply[Mapping[TopicPartition, ErrorCode]]:
        self.epochs.append(marking.coordinator_epoch)
        keys = list(partitions)
        if len(self.epochs) == 1:
            self._keys = keys
            return self._first
        written: DeferredReply[Mapping[TopicPartition, ErrorCode]] = DeferredReply()
        written.settle(dict.fromkeys(keys, E.none))
        return written

    def settle(self, code: ErrorCode) -> None:
        self._first.settle(dict.fromkeys(self._keys, code))


async def ending(rig: TxnSide) -> tuple[Waiting, asyncio.Future[Producer]]:
    """A commit whose markers are on their way."""
    waiting = rig.parts.finishing.markers = Waiting()
    me = await rig.init()
    await rig.add(me)
    ended = asyncio.ensure_future(rig.end(me, True))
    await rig.side.settle()
    assert waiting.epochs == [0]
    assert not ended.done()
    return waiting, ended


async def state(rig: TxnSide) -> TxnState:
    return (await rig.txns.describe(ID)).state


async def lead_anew(rig: TxnSide, how: str) -> None:
    """Lead on in a newer epoch, or lose the partition and load it again."""
    if how == "loaded again":
        rig.parts.runtime.on_unlead(STATE)
        await rig.side.follow(STATE, epoch=1)
    await rig.coordinate(epoch=2)


@pytest.mark.spec("TXN-44")
@pytest.mark.parametrize("how", ["led on", "loaded again"])
@pytest.mark.parametrize("code", [E.transaction_coordinator_fenced, E.not_leader_or_follower])
async def test_what_the_coordinator_of_before_could_not_finish_the_one_of_now_does(
    how: str, code: ErrorCode
) -> None:
    async with txn_side() as rig:
        waiting, ended = await ending(rig)
        await lead_anew(rig, how)
        assert waiting.epochs == [0], "one is at it already"
        waiting.settle(code)
        await rig.side.settle()
        assert waiting.epochs == [0, 2]
        assert await state(rig) is TxnState.COMPLETE_COMMIT
        await ended


async def test_a_decision_is_completed_once_though_it_was_loaded_again_meanwhile() -> None:
    async with txn_side() as rig:
        waiting, ended = await ending(rig)
        await lead_anew(rig, "loaded again")
        waiting.settle(E.none)
        await ended
        await rig.side.settle()
        assert await state(rig) is TxnState.COMPLETE_COMMIT


async def test_who_waits_for_markers_is_answered_when_the_partition_is_lost() -> None:
    """The decision is committed: whoever coordinates next completes it."""
    async with txn_side() as rig:
        waiting, ended = await ending(rig)
        rig.parts.runtime.on_unlead(STATE)
        await rig.side.follow(STATE, epoch=1)
        waiting.settle(E.none)
        await rig.side.settle()
        assert ended.done()
        await ended


async def test_who_waits_for_markers_is_answered_when_the_broker_stops() -> None:
    async with txn_side() as rig:
        waiting, ended = await ending(rig)
        rig.parts.finishing.close()
        await rig.side.settle()
        assert ended.done()
        waiting.settle(E.none)
        assert await state(rig) is TxnState.PREPARE_COMMIT


async def test_an_answer_that_was_given_in_time_is_not_given_again_with_the_markers() -> None:
    async with txn_side() as rig:
        waiting = rig.parts.finishing.markers = Waiting()
        me = await rig.init()
        await rig.add(me)
        told: list[Ended] = []
        rig.txns.start_ending(ID, EndRequest(me, True), told.append)
        await rig.side.until(rig.side.clock.mono_ms() + ANSWER_WITHIN_MS - 10)
        assert told == []
        await rig.side.until(rig.side.clock.mono_ms() + 20)
        assert told == [Ended(E.none, me)]
        waiting.settle(E.none)
        await rig.side.until(rig.side.clock.mono_ms() + 2 * ANSWER_WITHIN_MS)
        assert len(told) == 1
        assert await state(rig) is TxnState.COMPLETE_COMMIT


async def test_an_answer_that_fails_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with txn_side({"flush.before.ack": "all"}) as rig:
        me = await rig.init()
        await rig.add(me)

        def fails(_: Ended) -> None:
            raise RuntimeError("the reply cannot be written")

        rig.txns.start_ending(ID, EndRequest(me, True), fails)
        await rig.side.settle()
        assert await state(rig) is TxnState.COMPLETE_COMMIT
        await rig.add(me)
        await rig.end(me, True)
    assert "the reply cannot be written" in caplog.text


async def test_a_decision_that_cannot_be_written_is_refused_and_may_be_asked_for_again() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        await rig.add(me)
        rig.side.config.set_topic(STATE.topic, {"max.message.bytes": "70"})
        assert await rig.refusal(rig.end(me, True)) is E.unknown_server_error
        assert await state(rig) is TxnState.ONGOING
        rig.side.config.set_topic(STATE.topic, {})
        await rig.end(me, True)
        assert await state(rig) is TxnState.COMPLETE_COMMIT


@pytest.mark.spec("TXN-44")
async def test_a_decision_whose_commit_is_not_lived_to_see_is_finished_by_whoever_loads_it() -> (
    None
):
    async with txn_side({"flush.before.ack": "all"}) as rig:
        me = await rig.init()
        await rig.add(me)
        rig.side.pool.held = True
        asked = asyncio.ensure_future(rig.refusal(rig.end(me, True)))
        await rig.side.settle()
        rig.parts.runtime.on_unlead(STATE)
        await rig.side.follow(STATE, epoch=1)
        assert await asked is E.not_coordinator
        rig.side.pool.held = False
        rig.side.pool.run_all()
        await rig.coordinate(epoch=2)
        await rig.side.settle()
        assert await state(rig) is TxnState.COMPLETE_COMMIT
        await rig.add(me)
