"""The partition state machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.controller import partitions
from ottla.controller.draft import Draft
from ottla.controller.state import PartitionState
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, ControllerEpoch, TopicPartition
from tests.controller.transcript import Actor

T0 = TopicPartition("t", 0)


def draft(stored: str = "1,2/1/1,2", alive: str = "1 2") -> Draft:
    actor = Actor()
    actor.run(f"elected 3 {alive} t-0={stored}")
    return Draft(actor.state)


@pytest.mark.spec("CTL-59", "CTL-62")
def test_an_illegal_move_is_noted_and_skipped() -> None:
    event = draft()
    partitions.move(event, [T0], PartitionState.NON_EXISTENT)
    assert event.partition(T0).state is PartitionState.ONLINE
    assert event.step().warnings == (
        "ignored illegal state change of partition t-0 from Online to NonExistent",
    )


@pytest.mark.spec("CTL-64")
def test_the_first_leader_is_the_first_live_replica_and_all_live_ones_are_in_sync() -> None:
    event = draft("3,2,1", alive="1 2")
    leadership = event.partition(T0).leadership
    assert leadership is not None
    assert (leadership.leader, leadership.isr, leadership.leader_epoch) == (2, (2, 1), 0)


@pytest.mark.spec("CTL-64")
def test_without_a_live_replica_a_new_partition_waits() -> None:
    event = draft("3", alive="1 2")
    assert event.partition(T0).state is PartitionState.NEW
    failures = partitions.bring_online(event, [T0], partitions.offline_election)
    assert failures == {T0: ErrorCode.leader_not_available}


@pytest.mark.spec("CTL-65")
def test_a_state_written_by_a_later_controller_is_left_alone() -> None:
    event = draft()
    partition = event.partition(T0)
    assert partition.leadership is not None
    newer = replace(partition.leadership, controller_epoch=ControllerEpoch(9))
    event.put(T0, replace(partition, leadership=newer))
    failures = partitions.bring_online(event, [T0], partitions.preferred_election)
    assert failures == {T0: ErrorCode.stale_controller_epoch}
    assert event.writes == []


@pytest.mark.spec("CTL-65", "CTL-68")
def test_an_election_raises_the_leader_epoch_and_a_failed_one_changes_nothing() -> None:
    event = draft("2,1/1/1,2")
    assert partitions.bring_online(event, [T0], partitions.preferred_election) == {}
    leadership = event.partition(T0).leadership
    assert leadership is not None
    assert (leadership.leader, leadership.leader_epoch) == (2, 6)
    stuck = draft("2,1/1/1")
    failures = partitions.bring_online(stuck, [T0], partitions.preferred_election)
    assert failures == {T0: ErrorCode.preferred_leader_not_available}
    assert stuck.writes == []


@pytest.mark.spec("MON-15", "CTL-66")
def test_unclean_elections_are_counted() -> None:
    event = draft("1,2/1/1", alive="2")
    assert partitions.bring_online(event, [T0], partitions.offline_election) == {
        T0: ErrorCode.eligible_leaders_not_available
    }
    assert partitions.bring_online(event, [T0], partitions.unclean_election) == {}
    assert event.step().state.unclean_elections == 1


def test_a_bumped_epoch_keeps_the_leader() -> None:
    event = draft()
    partitions.bump_epoch(event, T0, [BrokerId(1)])
    leadership = event.partition(T0).leadership
    assert leadership is not None
    assert (leadership.leader, leadership.leader_epoch, leadership.controller_epoch) == (1, 6, 3)
