"""Markers on partitions led here."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.markers import TransactionEnd
from ottla.coordinator.txn.state import Producer, TxnState
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, ProducerId, TopicPartition
from ottla.protocol.records.control import ControlType
from tests.coordinator.txn.rig import ID, OTHER_TP, txn_side
from tests.fakes.data_side import TP

E = ErrorCode
ME = Producer(ProducerId(7), 3)


@pytest.mark.spec("TXN-38", "TXN-45")
async def test_every_partition_gets_its_marker_or_says_why_not() -> None:
    async with txn_side() as rig:
        offsets, gone = TopicPartition(CONSUMER_OFFSETS, 4), TopicPartition("gone", 0)
        await rig.side.follow(OTHER_TP, epoch=1)
        marking = TransactionEnd(ME, True, 5)
        codes = await rig.txns.markers.write(marking, [TP, OTHER_TP, offsets, gone])
        assert codes == {
            TP: E.none,
            OTHER_TP: E.not_leader_or_follower,
            offsets: E.none,
            gone: E.unknown_topic_or_partition,
        }
        [(index, producer, marker)] = rig.offsets.ended
        assert (index, producer, marker) == (4, ME, marking.marker)
        assert marker == (ControlType.COMMIT, 5)
        state = rig.side.hosted.get(TP).log.producers.get(7)
        assert state is not None
        assert (state.epoch, state.coordinator_epoch) == (3, 5)


@pytest.mark.spec("TXN-44")
async def test_older_producers_and_coordinators_cannot_mark() -> None:
    async with txn_side() as rig:
        write = rig.txns.markers.write
        assert await write(TransactionEnd(ME, True, 5), [TP]) == {TP: E.none}
        older = TransactionEnd(ME._replace(epoch=2), True, 5)
        assert await write(older, [TP]) == {TP: E.invalid_producer_epoch}
        fenced = await write(TransactionEnd(ME, True, 4), [TP])
        assert fenced == {TP: E.transaction_coordinator_fenced}


async def test_a_marker_may_be_written_twice_while_nothing_new_has_begun() -> None:
    async with txn_side() as rig:
        for _ in range(2):
            assert await rig.txns.markers.write(TransactionEnd(ME, True, 5, 2), [TP]) == {
                TP: E.none
            }


@pytest.mark.spec("TXN-38")
@pytest.mark.parametrize(
    "code", [E.coordinator_load_in_progress, E.not_coordinator, E.coordinator_not_available]
)
async def test_a_group_coordinator_that_cannot_take_a_marker_is_a_partition_without_leader(
    code: ErrorCode,
) -> None:
    """To whoever asks for a marker, these codes would speak of the transaction coordinator."""
    async with txn_side() as rig:
        key = TopicPartition(CONSUMER_OFFSETS, 4)
        rig.offsets.refusals = [code]
        assert await rig.txns.markers.write(TransactionEnd(ME, True, 5), [key]) == {
            key: E.not_leader_or_follower
        }
        assert await rig.txns.markers.write(TransactionEnd(ME, True, 5), [key]) == {key: E.none}


@pytest.mark.spec("TXN-38")
async def test_a_transaction_with_offsets_ends_once_the_group_coordinator_has_loaded() -> None:
    async with txn_side() as rig:
        key = TopicPartition(CONSUMER_OFFSETS, 0)
        await rig.side.lead(key)
        rig.offsets.refusals = [E.coordinator_load_in_progress] * 20
        me = await rig.init()
        await rig.add(me, TP, key)
        await rig.end(me, True)
        await rig.side.until(60_000)
        assert (await rig.txns.describe(ID)).state is TxnState.COMPLETE_COMMIT
        assert len(rig.offsets.ended) == 1
