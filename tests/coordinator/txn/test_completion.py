"""From a decision to its completion, past whatever stands in the way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

import pytest

from ottla.coordinator.deferred_reply import DeferredReply
from ottla.coordinator.txn.completion import LAST_RETRY_MS
from ottla.coordinator.txn.markers import TransactionEnd
from ottla.coordinator.txn.state import TxnState
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.coordinator.txn.rig import ID, OTHER_TP, TxnSide, txn_side
from tests.fakes.data_side import TP
from tests.fakes.forgetting_disk import ForgettingDisk

E = ErrorCode


class Moody:
    """Writes no marker, and answers as it is told to; then always well."""

    def __init__(self, *moods: dict[TopicPartition, ErrorCode]) -> None:
        self.moods = deque(moods)
        self.asked: list[tuple[TransactionEnd, list[TopicPartition]]] = []

    def write(
        self, marking: TransactionEnd, partitions: Iterable[TopicPartition]
    ) -> DeferredReply[Mapping[TopicPartition, ErrorCode]]:
        keys = list(partitions)
        self.asked.append((marking, keys))
        mood = self.moods.popleft() if self.moods else {}
        written = DeferredReply[Mapping[TopicPartition, ErrorCode]]()
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
async def test_markers_are_tried_until_every_partition_has_one() -> None:
    async with txn_side() as rig:
        busy = {TP: E.not_leader_or_follower}
        moody = await decided(rig, busy, busy, {OTHER_TP: E.request_timed_out})
        await rig.side.until(10 * LAST_RETRY_MS)
        assert [keys for _, keys in moody.asked] == [[TP, OTHER_TP], [TP], [TP]]
        assert await state(rig) is TxnState.COMPLETE_COMMIT


@pytest.mark.spec("TXN-38")
@pytest.mark.parametrize(
    "code",
    [
        E.coordinator_load_in_progress,
        E.not_coordinator,
        E.coordinator_not_available,
        E.unknown_topic_or_partition,
        E.kafka_storage_error,
        E.unknown_server_error,
    ],
)
async def test_whatever_a_partition_refuses_its_marker_is_tried_until_taken(
    code: ErrorCode,
) -> None:
    """None of these speaks of the coordinator's own partition, though some have its words."""
    async with txn_side() as rig:
        moody = await decided(rig, *[{TP: code}] * 40)
        await rig.side.until(20 * LAST_RETRY_MS)
        assert await state(rig) is TxnState.PREPARE_COMMIT
        asked_by_then = len(moody.asked)
        assert asked_by_then <= 30, "it backs off"
        await rig.side.until(60 * LAST_RETRY_MS)
        assert len(moody.asked) == 41
        assert await state(rig) is TxnState.COMPLETE_COMMIT


async def test_a_broker_that_stops_starts_no_more_attempts_and_lets_waiting_clients_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its tasks may have been cancelled before the coordinator is told to close."""

    def refuse(work: Coroutine[Any, Any, None]) -> None:
        work.close()

    async with txn_side() as rig:
        completion = rig.parts.finishing
        completion._spawn = refuse
        await decided(rig, {TP: E.not_leader_or_follower})
        gone: list[bool] = []
        completion.when_completed(ID, 60_000, lambda: gone.append(True))
        completion.finish(ID)
        assert gone == [True]
    assert "Traceback" not in caplog.text


@pytest.mark.spec("TXN-38")
async def test_a_decision_found_at_loading_is_finished_while_a_partition_of_it_still_loads() -> (
    None
):
    disk = ForgettingDisk()
    async with txn_side(disk=disk) as rig:
        await decided(rig, *[{TP: E.not_leader_or_follower}] * 1_000)
    disk.kill()
    async with txn_side(disk=disk, epoch=1, coordinates=False) as rig:
        moody = rig.parts.finishing.markers = Moody(
            *[{OTHER_TP: E.coordinator_load_in_progress}] * 50
        )
        await rig.coordinate(epoch=1)
        await rig.side.until(100 * LAST_RETRY_MS)
        assert len(moody.asked) == 51
        assert await state(rig) is TxnState.COMPLETE_COMMIT


async def test_markers_go_on_being_tried_after_an_unexpected_failure() -> None:
    class Broken(Moody):
        left = 3

        def write(
            self, marking: TransactionEnd, partitions: Iterable[TopicPartition]
        ) -> DeferredReply[Mapping[TopicPartition, ErrorCode]]:
            if self.left:
                self.left -= 1
                raise RuntimeError("a bug")
            return super().write(marking, partitions)

    async with txn_side() as rig:
        rig.parts.finishing.markers = broken = Broken()
        me = await rig.init()
        await rig.add(me)
        await rig.end(me, True)
        await rig.side.until(10 * LAST_RETRY_MS)
        assert broken.left == 0
        assert await state(rig) is TxnState.COMPLETE_COMMIT


async def test_a_partition_that_metadata_and_store_lack_needs_no_marker() -> None:
    async with txn_side() as rig:
        unknown = {TP: E.unknown_topic_or_partition}
        moody = await decided(rig, *[unknown] * 1_000)
        await rig.side.until(5 * LAST_RETRY_MS)
        assert await state(rig) is TxnState.PREPARE_COMMIT, "the topic is still there"
        rig.side.forget(TP)
        await rig.side.until(10 * LAST_RETRY_MS)
        assert await state(rig) is TxnState.PREPARE_COMMIT, "the metadata may be incomplete"
        await rig.side.delete_topic(TP.topic)
        await rig.side.until(15 * LAST_RETRY_MS)
        assert await state(rig) is TxnState.COMPLETE_COMMIT
        assert moody.moods, "it did not wait for better answers"


async def test_a_partition_where_somebody_newer_writes_does_not_hold_it_up() -> None:
    async with txn_side() as rig:
        moody = await decided(rig, {TP: E.invalid_producer_epoch})
        assert await state(rig) is TxnState.COMPLETE_COMMIT
        assert len(moody.asked) == 1


@pytest.mark.spec("TXN-44")
async def test_a_coordinator_that_was_replaced_stops_trying() -> None:
    async with txn_side() as rig:
        fenced = {TP: E.transaction_coordinator_fenced}
        moody = await decided(rig, *[fenced] * 1_000)
        await rig.side.until(10_000)
        assert len(moody.asked) == 2
        assert await state(rig) is TxnState.PREPARE_COMMIT


@pytest.mark.spec("TXN-44")
async def test_a_coordinator_that_leads_on_under_a_newer_epoch_finishes_what_it_had_stopped() -> (
    None
):
    async with txn_side(epoch=3) as rig:
        fenced = {TP: E.transaction_coordinator_fenced}
        moody = await decided(rig, fenced, fenced)
        await rig.side.until(10_000)
        await rig.coordinate(epoch=5)
        await rig.side.until(20_000)
        assert [marking.coordinator_epoch for marking, _ in moody.asked] == [3, 3, 5]
        assert await state(rig) is TxnState.COMPLETE_COMMIT


async def test_markers_carry_the_epoch_under_which_this_broker_coordinates() -> None:
    async with txn_side(epoch=6) as rig:
        moody = await decided(rig)
        [(marking, keys)] = moody.asked
        assert (marking.coordinator_epoch, marking.commit) == (6, True)
        assert keys == [TP, OTHER_TP]


async def test_no_marker_is_written_before_the_decision_is_committed() -> None:
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


async def test_after_closing_nothing_is_begun() -> None:
    async with txn_side() as rig:
        rig.parts.finishing.close()
        moody = await decided(rig)
        await rig.side.until(1_000)
        assert moody.asked == []
