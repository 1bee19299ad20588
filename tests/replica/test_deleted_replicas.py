"""A request that is carried out late does not bring back a replica that was deleted."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import DELETED_EPOCH, LeaderEpoch, TopicPartition
from ottla.replica.hosted_partitions import DELETED_MAX, DeletedReplicas
from ottla.replica.leader import LeaderAssignment
from ottla.replica.transitions import PartitionStop, PartitionTransition
from tests.fakes.data_side import ME, NEW_TOPIC_ID, OTHER, TOPIC_ID, TP, DataSide, data_side


async def host(side: DataSide, topic_id: UUID, epoch: int = 0) -> ErrorCode:
    """A LeaderAndIsr of a replica that has just been assigned to this broker."""
    assigned = LeaderAssignment(OTHER, LeaderEpoch(epoch), (OTHER,), (OTHER, ME), version=0)
    wanted = PartitionTransition(TP, topic_id, assigned, is_new=True)
    return (await side.services.transitions.apply_leader_and_isr([wanted]))[TP]


async def delete(side: DataSide, epoch: int) -> None:
    stop = PartitionStop(TP, LeaderEpoch(epoch), delete=True)
    codes = await side.services.transitions.stop_replicas([stop])
    assert codes == {TP: ErrorCode.none}


async def test_a_replica_of_a_deleted_topic_never_returns() -> None:
    """A controller that got no answer in time asked again, and then had the topic deleted."""
    async with data_side() as side:
        assert await host(side, TOPIC_ID) is ErrorCode.none
        await delete(side, DELETED_EPOCH)
        assert await host(side, TOPIC_ID) is ErrorCode.unknown_topic_id
        assert (side.hosted.find(TP), side.directories.get(TP)) == (None, None)
        assert await host(side, NEW_TOPIC_ID) is ErrorCode.none
        assert await host(side, TOPIC_ID) is ErrorCode.unknown_topic_id
        assert side.hosted.get(TP).log.topic_id == NEW_TOPIC_ID


@pytest.mark.parametrize(("epoch", "returns"), [(2, False), (3, True), (4, True)])
async def test_a_replica_that_was_reassigned_returns_unless_the_epoch_is_older(
    epoch: int, returns: bool
) -> None:
    async with data_side() as side:
        assert await host(side, TOPIC_ID, 2) is ErrorCode.none
        await delete(side, 3)
        assert (await host(side, TOPIC_ID, epoch) is ErrorCode.none) == returns
        assert (side.directories.get(TP) is not None) == returns


def test_only_so_many_deleted_replicas_are_remembered() -> None:
    deleted = DeletedReplicas()
    partitions = [TopicPartition("t", number) for number in range(DELETED_MAX + 1)]
    for partition in partitions:
        deleted.add(partition, TOPIC_ID, DELETED_EPOCH)
    remembered = [deleted.has(partition, TOPIC_ID, LeaderEpoch(0)) for partition in partitions]
    assert remembered == [False, *[True] * DELETED_MAX]
