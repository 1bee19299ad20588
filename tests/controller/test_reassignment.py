"""Replicas that move."""

from __future__ import annotations

import pytest

from ottla.controller.effects import StopReplica
from ottla.controller.events import IsrChangeRequested, IsrMember, IsrProposal
from ottla.controller.machine import on_event
from ottla.controller.state import PartitionAssignment
from ottla.model.errors import KafkaError
from ottla.model.ids import BrokerEpoch, BrokerId, TopicPartition
from tests.controller.transcript import COMMANDS, Actor, play

T0 = TopicPartition("t", 0)


class Story(Actor):
    """A topic t-0 on brokers 1 and 2, and what was sent and replied last."""

    def __init__(self, *commands: str) -> None:
        super().__init__()
        for command in ("elected 1 1 2 3 4", "create t 0=1,2", *commands):
            self.happens(command)

    def happens(self, command: str) -> None:
        word, *rest = command.split()
        self.step = on_event(self.state, COMMANDS[word](self, rest))
        self.state = self.step.state

    @property
    def partition(self) -> PartitionAssignment:
        return self.state.topics["t"].partitions[0]

    @property
    def refusal(self) -> object:
        (answer,) = [r.answer for r in self.step.replies if isinstance(r.answer, dict)]
        return answer[T0]

    @property
    def deleted_on(self) -> set[int]:
        stops = (send for send in self.step.sends if isinstance(send, StopReplica))
        return {stop.broker for stop in stops if any(one.delete for one in stop.replicas)}


@pytest.mark.spec("CTL-67", "REP-73")
def test_replicas_join_catch_up_take_over_and_the_old_ones_go() -> None:
    play("reassignment")


@pytest.mark.spec("REP-73")
def test_a_move_called_off_ends_where_it_began() -> None:
    play("reassignment_called_off")


@pytest.mark.spec("REP-73", "CTL-50")
def test_a_new_controller_goes_on_with_a_move_and_deletes_only_after_it() -> None:
    play("reassignment_resumed")


@pytest.mark.spec("REP-73")
def test_a_move_called_off_keeps_the_only_replica_in_sync_until_others_have_caught_up() -> None:
    story = Story("move t-0=3,4", "isr t-0=1,3", "brokers 2 3 4")
    assert (story.partition.leader, story.partition.isr) == (3, (3,))
    story.happens("move t-0=cancel")
    assert (story.partition.leader, story.partition.isr) == (3, (3,))
    assert story.deleted_on == {4}, "broker 3 has records that no other has"
    assert story.partition.removing == (3,)
    story.happens("brokers 1 2 3 4")
    story.happens("isr t-0=3,2")
    assert story.partition.is_moving, "not below the replicas that there were"
    story.happens("isr t-0=3,2,1")
    assert not story.partition.is_moving
    assert story.partition.replicas == (1, 2)
    assert story.partition.leader in (1, 2)
    assert set(story.partition.isr) == {1, 2}
    assert story.deleted_on == {3}


@pytest.mark.spec("REP-73", "CTL-67")
def test_a_move_called_off_takes_the_leader_back_at_once_where_the_old_replicas_are_in_sync() -> (
    None
):
    story = Story("move t-0=3,4", "isr t-0=1,2,3", "elect preferred t-0")
    assert story.partition.leader == 3
    story.happens("move t-0=cancel")
    assert (story.partition.replicas, story.partition.leader) == ((1, 2), 1)
    assert set(story.partition.isr) == {1, 2}
    assert story.deleted_on == {3, 4}


@pytest.mark.spec("REP-73", "CTL-50")
def test_a_move_to_a_dead_broker_can_be_called_off_although_the_topic_is_to_be_deleted() -> None:
    story = Story("move t-0=1,4", "brokers 1 2 3", "delete t")
    assert not story.state.deletions["t"].started
    story.happens("move t-0=cancel")
    assert story.refusal is None
    assert story.state.deletions["t"].started, "the deletion goes on at once"
    story.happens("stopped 1 t-0=none")
    story.happens("stopped 2 t-0=none")
    assert "t" not in story.state.topics


@pytest.mark.spec("REP-73")
def test_a_move_does_not_end_while_a_new_replica_is_dead() -> None:
    story = Story("move t-0=3,4", "isr t-0=1,2,3", "brokers 1 2 3")
    assert story.partition.is_moving
    assert story.deleted_on == set()
    assert story.partition.leader == 1
    story.happens("brokers 1 2 3 4")
    story.happens("isr t-0=1,2,3,4")
    assert (story.partition.replicas, story.partition.leader) == ((3, 4), 3)


@pytest.mark.spec("REP-73")
def test_a_move_does_not_end_while_a_replica_that_stays_is_out_of_sync() -> None:
    """Else it would end with one replica in sync, below min.insync.replicas."""
    story = Story("isr t-0=1", "move t-0=2,3", "isr t-0=1,3")
    assert story.partition.is_moving
    assert set(story.partition.isr) == {1, 3}
    assert story.deleted_on == set()
    story.happens("isr t-0=1,2,3")
    assert (story.partition.replicas, set(story.partition.isr)) == ((2, 3), {2, 3})


@pytest.mark.spec("REP-73", "CTL-50")
def test_a_topic_being_deleted_is_not_moved() -> None:
    story = Story("delete t", "move t-0=3,4")
    assert isinstance(story.refusal, KafkaError)
    story.happens("move t-0=cancel")
    assert isinstance(story.refusal, KafkaError)


@pytest.mark.spec("REP-73", "CTL-50")
def test_a_leader_may_change_its_isr_while_the_deletion_waits_for_the_move() -> None:
    story = Story("move t-0=1,3", "delete t")
    led = story.leadership(T0)
    members = tuple(IsrMember(BrokerId(id)) for id in (1, 2, 3))
    proposals = {
        (story.state.topics["t"].id, 0): IsrProposal(members, led.leader_epoch, led.version)
    }
    request = IsrChangeRequested(9, BrokerId(1), BrokerEpoch(0), proposals)
    step = on_event(story.state, request)
    assert step.state.deletions["t"].started, "the move ended, and the deletion began"
    assert not step.state.topics["t"].partitions[0].is_moving


@pytest.mark.spec("REP-73")
def test_a_partition_that_never_had_a_leader_gets_one_where_it_is_moved() -> None:
    story = Story("shutdown 1", "shutdown 2", "create u 0=1,2")
    assert story.state.topics["u"].partitions[0].leadership is None
    story.happens("move u-0=3,4")
    partition = story.state.topics["u"].partitions[0]
    assert (partition.leader, partition.replicas) == (3, (3, 4))
