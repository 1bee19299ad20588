"""Brokers that come back with a wiped or another disk."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from ottla.controller.effects import Step
from ottla.controller.events import Elected, LiveBrokersChanged
from ottla.controller.machine import on_event
from ottla.controller.state import (
    BrokerState,
    ControllerState,
    Leadership,
    PartitionAssignment,
    TopicAssignment,
)
from ottla.model.ids import (
    NO_BROKER,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicPartition,
)
from ottla.store import paths
from ottla.store.nodes import LogDirsNode, StateNode
from ottla.store.port import Set

TP = TopicPartition("t", 0)
B1, B2, B3 = map(BrokerId, (1, 2, 3))
NEW_DIRS = LogDirsNode({UUID(int=5): "/new"})


def brokers(*ids: int, epoch: int = 10) -> dict[BrokerId, BrokerState]:
    return {BrokerId(id): BrokerState(BrokerId(id), BrokerEpoch(epoch), ()) for id in ids}


def elected(leader: int, isr: tuple[int, ...], *, lost: tuple[int, ...] = ()) -> Elected:
    state = Leadership(
        BrokerId(leader), tuple(map(BrokerId, isr)), LeaderEpoch(7), ControllerEpoch(1), 4
    )
    topic = TopicAssignment(
        UUID(int=1), {0: PartitionAssignment((B1, B2, B3), leadership=state)}, 0
    )
    return Elected(
        ControllerEpoch(2),
        1,
        brokers(1, 2, 3),
        {"t": topic},
        lost_disks={BrokerId(id): NEW_DIRS for id in lost},
    )


def led(step: Step) -> Leadership:
    found = step.state.topics["t"].partitions[0].leadership
    assert found is not None
    return found


def written(step: Step) -> StateNode:
    states = [op for op in step.writes if isinstance(op, Set) and op.path.endswith("/state")]
    return StateNode.decode(states[-1].data)


@pytest.mark.spec("REP-71", "CTL-66")
def test_a_leader_with_a_wiped_disk_is_replaced_before_its_new_disk_is_remembered() -> None:
    step = on_event(ControllerState(B1), elected(2, (1, 2, 3), lost=(2,)))
    assert (led(step).leader, led(step).isr) == (1, (1, 3))
    assert led(step).leader_epoch > 7
    assert (written(step).leader, written(step).isr) == (1, (1, 3))
    kinds = [op.path for op in step.writes]
    remembered = kinds.index(paths.log_dirs(B2))
    assert kinds.index(paths.partition_state(TP)) < remembered
    assert step.writes[remembered] == Set(paths.log_dirs(B2), NEW_DIRS.encode())


@pytest.mark.spec("REP-71")
def test_a_follower_with_a_wiped_disk_leaves_the_isr_and_the_leader_stays() -> None:
    step = on_event(ControllerState(B1), elected(1, (1, 2), lost=(2,)))
    assert (led(step).leader, led(step).isr) == (1, (1,))


@pytest.mark.spec("CTL-66")
def test_a_partition_whose_last_in_sync_replica_was_wiped_goes_offline_and_stays_so() -> None:
    step = on_event(ControllerState(B1), elected(2, (2,), lost=(2,)))
    assert (led(step).leader, led(step).isr) == (NO_BROKER, ())
    assert any("partition t-0 is offline" in warning for warning in step.warnings)
    later = on_event(step.state, LiveBrokersChanged(brokers(1, 3) | brokers(2, epoch=20)))
    assert led(later).leader == NO_BROKER


@pytest.mark.spec("CTL-42", "REP-71")
def test_a_broker_that_returns_with_a_wiped_disk_comes_back_as_a_follower() -> None:
    state = on_event(ControllerState(B1), elected(2, (2, 3))).state
    returned = brokers(1, 3) | brokers(2, epoch=20)
    step = on_event(state, LiveBrokersChanged(returned, {B2: NEW_DIRS}))
    assert (led(step).leader, led(step).isr) == (3, (3,))
    assert Set(paths.log_dirs(B2), NEW_DIRS.encode()) in step.writes
    assert B2 in step.state.brokers


def test_a_last_replica_that_returns_wiped_is_not_elected_and_one_with_its_disk_is() -> None:
    state = on_event(ControllerState(B1), elected(2, (2,))).state
    gone = on_event(state, LiveBrokersChanged(brokers(1, 3))).state
    returned = LiveBrokersChanged(brokers(1, 3) | brokers(2, epoch=20))
    assert led(on_event(gone, returned)).leader == 2
    wiped = on_event(gone, returned._replace(lost_disks={B2: NEW_DIRS}))
    assert (led(wiped).leader, led(wiped).isr) == (NO_BROKER, ())


def restarted(event: Elected, *, written: int = 5) -> Elected:
    """All brokers (epoch 10) have registered after the state was written."""
    partition = event.topics["t"].partitions[0]
    assert partition.leadership is not None
    old = replace(partition, leadership=replace(partition.leadership, written=written))
    return event._replace(topics={"t": replace(event.topics["t"], partitions={0: old})})


@pytest.mark.spec("REP-71", "CTL-35", "CTL-66")
@pytest.mark.parametrize("leader", [1, 2])
def test_a_wiped_broker_is_not_kept_where_all_in_sync_replicas_restarted(leader: int) -> None:
    step = on_event(ControllerState(B3), restarted(elected(leader, (1, 2), lost=(2,))))
    assert (led(step).leader, led(step).isr) == (1, (1,))
    assert (written(step).leader, written(step).isr) == (1, (1,))


@pytest.mark.spec("REP-71", "CTL-35", "CTL-66")
def test_a_wiped_last_replica_that_restarted_between_controllers_is_not_elected() -> None:
    step = on_event(ControllerState(B3), restarted(elected(2, (2,), lost=(2,))))
    assert (led(step).leader, led(step).isr) == (NO_BROKER, ())
    assert (written(step).leader, written(step).isr) == (NO_BROKER, ())


@pytest.mark.spec("CTL-66")
@pytest.mark.parametrize("lost", [1, 2])
def test_an_unclean_election_prefers_replicas_that_still_have_their_disks(lost: int) -> None:
    event = elected(lost, (lost,), lost=(lost,))._replace(unclean={"t": True})
    step = on_event(ControllerState(B3), event)
    other = 2 if lost == 1 else 1
    assert (led(step).leader, led(step).isr) == (other, (other,))
    assert step.state.unclean_elections == 1


@pytest.mark.spec("CTL-34", "CTL-35")
def test_a_broker_that_restarted_unnoticed_is_no_longer_shutting_down() -> None:
    before = ControllerState(
        B1,
        brokers=brokers(1, 2) | brokers(3, epoch=3),
        shutting_down=frozenset({B2, B3}),
        failed_directories={B2: frozenset({TP}), B3: frozenset({TP})},
    )
    state = on_event(before, elected(1, (1, 2, 3))).state
    assert state.shutting_down == {B2}, "broker 3 has a new epoch"
    assert set(state.failed_directories) == {B2}
