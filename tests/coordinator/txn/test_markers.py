"""Markers on partitions led here."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.markers import Marking
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, ProducerId, TopicPartition
from ottla.protocol.records.control import ControlType
from tests.coordinator.txn.rig import OTHER_TP, txn_side
from tests.fakes.data_side import TP
from tests.fakes.virtual_loop import run

E = ErrorCode
ME = Producer(ProducerId(7), 3)


@pytest.mark.spec("TXN-38", "TXN-45")
def test_every_partition_gets_its_marker_or_says_why_not() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            offsets, gone = TopicPartition(CONSUMER_OFFSETS, 4), TopicPartition("gone", 0)
            await rig.side.follow(OTHER_TP, epoch=1)
            marking = Marking(ME, True, 5)
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

    run(story())


@pytest.mark.spec("TXN-44")
def test_older_producers_and_coordinators_cannot_mark() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            write = rig.txns.markers.write
            assert await write(Marking(ME, True, 5), [TP]) == {TP: E.none}
            older = Marking(ME._replace(epoch=2), True, 5)
            assert await write(older, [TP]) == {TP: E.invalid_producer_epoch}
            fenced = await write(Marking(ME, True, 4), [TP])
            assert fenced == {TP: E.transaction_coordinator_fenced}

    run(story())


def test_a_marker_may_be_written_twice_while_nothing_new_has_begun() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            for _ in range(2):
                assert await rig.txns.markers.write(Marking(ME, True, 5, 2), [TP]) == {TP: E.none}

    run(story())
