"""What a new controller does first."""

from __future__ import annotations

import pytest

from ottla.controller.effects import Step
from ottla.controller.events import Elected
from ottla.controller.machine import on_event
from ottla.controller.state import (
    BrokerState,
    ControllerState,
    Leadership,
    PartitionAssignment,
    TopicAssignment,
)
from ottla.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch
from tests.controller.transcript import play, topic_id


@pytest.mark.spec("CTL-17", "CTL-18", "CTL-32", "CTL-62", "CTL-65")
def test_a_new_controller_keeps_live_leaders_and_replaces_dead_ones() -> None:
    play("restart")


@pytest.mark.spec("CTL-17")
def test_a_single_node_that_restarts_writes_nothing_and_leads_again() -> None:
    play("single_node")


@pytest.mark.spec("REP-37")
def test_a_leader_that_was_away_leads_on_under_a_new_epoch() -> None:
    play("returned")


def new_controller(written: int, isr: tuple[int, ...], **brokers: int) -> Step:
    """After an election: a partition of 1, 2, 3, led by 1, and the epochs of the live brokers."""
    live = {BrokerId(int(name[1:])): BrokerEpoch(epoch) for name, epoch in brokers.items()}
    leadership = Leadership(
        BrokerId(1), tuple(map(BrokerId, isr)), LeaderEpoch(4), ControllerEpoch(1), 6, written
    )
    replicas = (BrokerId(1), BrokerId(2), BrokerId(3))
    partition = PartitionAssignment(replicas, leadership=leadership)
    elected = Elected(
        ControllerEpoch(2),
        0,
        {id: BrokerState(id, epoch, ()) for id, epoch in live.items()},
        {"t": TopicAssignment(topic_id("t"), {0: partition}, 0)},
    )
    return on_event(ControllerState(BrokerId(9)), elected)


def outcome(step: Step) -> tuple[int, tuple[int, ...], int, int]:
    now = step.state.topics["t"].partitions[0].leadership
    assert now is not None
    return now.leader, now.isr, now.leader_epoch, len(step.writes)


@pytest.mark.spec("CTL-35", "CTL-45")
def test_a_broker_that_restarted_between_two_controllers_leaves_the_set_and_leads_no_more() -> None:
    """Its registration is newer than the state that lists it: it may have lost records."""
    assert outcome(new_controller(50, (1, 2, 3), b1=60, b2=20, b3=30)) == (2, (2, 3), 5, 1)
    assert outcome(new_controller(50, (1, 2, 3), b1=10, b2=60, b3=30)) == (1, (1, 3), 5, 1)


@pytest.mark.spec("CTL-35")
def test_a_broker_that_registered_before_the_state_was_written_stays() -> None:
    assert outcome(new_controller(50, (1, 2, 3), b1=10, b2=20, b3=49)) == (1, (1, 2, 3), 4, 0)


@pytest.mark.spec("CTL-35", "REP-37")
def test_if_all_in_sync_restarted_they_stay_in_sync_under_a_new_epoch() -> None:
    assert outcome(new_controller(50, (1, 2), b1=60, b2=70, b3=80)) == (1, (1, 2), 5, 1)
    assert outcome(new_controller(50, (1,), b1=60, b2=20)) == (1, (1,), 5, 1)


def test_a_dead_leader_is_replaced_by_one_that_did_not_restart() -> None:
    assert outcome(new_controller(50, (1, 2, 3), b2=60, b3=20))[:2] == (3, (3,))
