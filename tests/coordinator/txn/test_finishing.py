"""From a decision to its completion, past whatever stands in the way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping

import pytest

from ottla.coordinator.pending import Pending
from ottla.coordinator.txn.finishing import AGAIN_MS
from ottla.coordinator.txn.markers import Marking
from ottla.coordinator.txn.state import TxnState
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.coordinator.txn.rig import ID, OTHER_TP, TxnSide, txn_side
from tests.fakes.data_side import TP
from tests.fakes.virtual_loop import run

E = ErrorCode


class Moody:
    """Writes no marker, and answers as it is told to; then always well."""

    def __init__(self, *moods: dict[TopicPartition, ErrorCode]) -> None:
        self.moods = deque(moods)
        self.asked: list[tuple[Marking, list[TopicPartition]]] = []

    def write(
        self, marking: Marking, partitions: Iterable[TopicPartition]
    ) -> Pending[Mapping[TopicPartition, ErrorCode]]:
        keys = list(partitions)
        self.asked.append((marking, keys))
        mood = self.moods.popleft() if self.moods else {}
        written = Pending[Mapping[TopicPartition, ErrorCode]]()
        written.settle({key: mood.get(key, E.none) for key in keys})
        return written


async def decided(rig: TxnSide, *moods: dict[TopicPartition, ErrorCode]) -> Moody:
    """A transaction over both partitions whose commit has just been asked for."""
    moody = rig.parts.finishing.markers = Moody(*moods)
    me = await rig.init()
    await rig.add(me, TP, OTHER_TP)
    await rig.end(me, True)
    return moody


async def state(rig: TxnSide) -> TxnState:
    return (await rig.txns.describe(ID)).state


@pytest.mark.spec("TXN-38", "TXN-39")
def test_markers_are_tried_until_every_partition_has_one() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            busy = {TP: E.not_leader_or_follower}
            moody = await decided(rig, busy, busy, {OTHER_TP: E.request_timed_out})
            await rig.side.until(10 * AGAIN_MS)
            assert len(moody.asked) == 4
            assert await state(rig) is TxnState.COMPLETE_COMMIT

    run(story())


@pytest.mark.parametrize("code", [E.unknown_topic_or_partition, E.invalid_producer_epoch])
def test_a_partition_that_needs_no_marker_any_more_does_not_hold_it_up(code: ErrorCode) -> None:
    async def story() -> None:
        async with txn_side() as rig:
            moody = await decided(rig, {TP: code})
            assert await state(rig) is TxnState.COMPLETE_COMMIT
            assert len(moody.asked) == 1

    run(story())


@pytest.mark.spec("TXN-44")
def test_a_coordinator_that_was_replaced_stops_trying() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            moody = await decided(rig, {TP: E.transaction_coordinator_fenced})
            await rig.side.until(10_000)
            assert len(moody.asked) == 1
            assert await state(rig) is TxnState.PREPARE_COMMIT

    run(story())


def test_markers_carry_the_epoch_under_which_this_broker_coordinates() -> None:
    async def story() -> None:
        async with txn_side(epoch=6) as rig:
            moody = await decided(rig)
            [(marking, keys)] = moody.asked
            assert (marking.coordinator_epoch, marking.commit) == (6, True)
            assert keys == [TP, OTHER_TP]

    run(story())


def test_no_marker_is_written_before_the_decision_is_committed() -> None:
    async def story() -> None:
        async with txn_side({"flush.before.ack": "all"}) as rig:
            moody = rig.parts.finishing.markers = Moody()
            me = await rig.init()
            await rig.add(me)
            rig.side.pool.held = True
            ending = asyncio.ensure_future(rig.end(me, True))
            await rig.side.settle()
            assert moody.asked == []
            rig.side.pool.held = False
            rig.side.pool.run_all()
            await ending
            assert len(moody.asked) == 1

    run(story())


def test_after_closing_nothing_is_begun() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            rig.parts.finishing.close()
            moody = await decided(rig)
            await rig.side.until(1_000)
            assert moody.asked == []

    run(story())
