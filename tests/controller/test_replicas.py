"""The replica state machine."""

from __future__ import annotations

import pytest

from ottla.controller import replicas
from ottla.controller.draft import Draft
from ottla.controller.effects import LeaderAndIsr, StopReplica
from ottla.controller.replicas import Replica
from ottla.controller.state import ReplicaState
from ottla.model.ids import NO_BROKER, BrokerId, TopicPartition
from tests.controller.transcript import Actor

R = ReplicaState
T0 = TopicPartition("t", 0)
ONE, TWO, THREE = map(BrokerId, (1, 2, 3))


def draft(stored: str = "1,2/1/1,2") -> Draft:
    actor = Actor()
    actor.run(f"elected 3 1 2 3 t-0={stored}")
    return Draft(actor.state)


@pytest.mark.spec("CTL-58", "CTL-59")
def test_an_illegal_move_is_noted_and_skipped() -> None:
    event = draft()
    replicas.move(event, [Replica(T0, ONE)], R.DELETION_STARTED)
    assert replicas.state_of(event.partition(T0), ONE) is R.ONLINE
    step = event.step()
    assert step.warnings == (
        "ignored illegal state change of replica 1 of partition t-0 from Online to DeletionStarted",
    )
    assert step.sends == ()


@pytest.mark.spec("CTL-60")
def test_a_new_replica_of_a_led_partition_is_told_its_leader() -> None:
    event = draft()
    replicas.move(event, [Replica(T0, THREE)], R.NEW)
    replicas.move(event, [Replica(T0, THREE)], R.ONLINE)
    assert event.partition(T0).replicas == (1, 2, 3), "it was missing in the assignment"
    leader_and_isr = [send for send in event.step().sends if isinstance(send, LeaderAndIsr)]
    assert [(send.broker, send.partitions[0].is_new) for send in leader_and_isr] == [(3, True)]


@pytest.mark.spec("CTL-61")
def test_an_offline_replica_is_stopped_and_leaves_the_isr() -> None:
    event = draft()
    replicas.move(event, [Replica(T0, TWO)], R.OFFLINE)
    leadership = event.partition(T0).leadership
    assert leadership is not None
    assert (leadership.leader, leadership.isr, leadership.leader_epoch) == (1, (1,), 6)
    sends = event.step().sends
    assert [send.broker for send in sends if isinstance(send, LeaderAndIsr)] == [1]
    assert [send.broker for send in sends if isinstance(send, StopReplica)] == [2]


@pytest.mark.spec("CTL-61")
def test_the_last_member_stays_in_the_isr_but_no_longer_leads() -> None:
    event = draft("1,2/1/1")
    replicas.move(event, [Replica(T0, ONE)], R.OFFLINE)
    leadership = event.partition(T0).leadership
    assert leadership is not None
    assert (leadership.leader, leadership.isr) == (NO_BROKER, (1,))
    writes = len(event.writes)
    replicas.move(event, [Replica(T0, ONE)], R.OFFLINE)
    assert len(event.writes) == writes, "nothing more to say"


@pytest.mark.spec("CTL-61")
def test_one_that_was_not_in_sync_changes_only_the_metadata() -> None:
    event = draft("1,2/1/1")
    replicas.move(event, [Replica(T0, TWO)], R.OFFLINE)
    assert event.writes == []


@pytest.mark.spec("CTL-54", "CTL-58")
def test_a_deleted_replica_leaves_no_state_behind() -> None:
    event = draft("1,2/1/1")
    steps = (R.OFFLINE, R.DELETION_STARTED, R.DELETION_SUCCESSFUL, R.NON_EXISTENT)
    for to in steps:
        replicas.move(event, [Replica(T0, TWO)], to)
    assert event.partition(T0).replica_states == {1: R.ONLINE}
    (stop,) = [send for send in event.step().sends if isinstance(send, StopReplica)]
    assert stop.replicas[0].delete
