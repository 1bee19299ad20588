"""The replica state machine: from new through online and offline to deleted.

Owns what each move does to one replica of one partition. An illegal move is noted and skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from ottla.controller.draft import Draft
from ottla.controller.state import REPLICA_MOVES, Leadership, PartitionAssignment, ReplicaState
from ottla.model.ids import NO_BROKER, BrokerId, LeaderEpoch, TopicPartition

R = ReplicaState


class Replica(NamedTuple):
    tp: TopicPartition
    broker: BrokerId


def of(draft: Draft, tps: Iterable[TopicPartition]) -> list[Replica]:
    """Every replica of these partitions."""
    return [Replica(tp, broker) for tp in tps for broker in draft.partition(tp).replicas]


def state_of(partition: PartitionAssignment, broker: BrokerId) -> ReplicaState:
    return partition.replica_states.get(broker, R.NON_EXISTENT)


def move(draft: Draft, replicas: Iterable[Replica], to: ReplicaState) -> None:
    for tp, broker in replicas:
        partition = draft.partition(tp)
        now = state_of(partition, broker)
        if to not in REPLICA_MOVES[now]:
            draft.note(f"replica {broker} of {tp} cannot go from {now.value} to {to.value}")
            continue
        match to:
            case R.NEW:
                _tell(draft, tp, broker, is_new=True)
            case R.ONLINE if now is R.NEW:
                _belongs(draft, tp, broker)
            case R.ONLINE:
                _tell(draft, tp, broker, is_new=False)
            case R.OFFLINE:
                if broker in draft.state.brokers:  # and not one that is only now coming back
                    draft.tell.stop(broker, tp, delete=False)
                _leave_isr(draft, tp, broker)
            case R.DELETION_STARTED:
                draft.tell.stop(broker, tp, delete=True)
        _set(draft, tp, broker, to)


def _set(draft: Draft, tp: TopicPartition, broker: BrokerId, to: ReplicaState) -> None:
    partition = draft.partition(tp)
    states = {**partition.replica_states, broker: to}
    if to is R.NON_EXISTENT:
        del states[broker]
    draft.put(tp, replace(partition, replica_states=states))


def _tell(draft: Draft, tp: TopicPartition, broker: BrokerId, *, is_new: bool) -> None:
    """A replica can start only when there is a leader to name."""
    if draft.partition(tp).leadership is not None:
        draft.tell.leader_and_isr((broker,), tp, is_new=is_new)
        draft.tell.metadata(draft.state.brokers, (tp,))


def _belongs(draft: Draft, tp: TopicPartition, broker: BrokerId) -> None:
    partition = draft.partition(tp)
    if broker not in partition.replicas:
        draft.note(f"replica {broker} of {tp} was not in its assignment")
        draft.put(tp, replace(partition, replicas=(*partition.replicas, broker)))


def _leave_isr(draft: Draft, tp: TopicPartition, broker: BrokerId) -> None:
    """An offline replica is not in sync, unless it is the last: that one's data still counts."""
    partition = draft.partition(tp)
    leadership = partition.leadership
    if tp.topic in draft.state.deletions:
        return  # nobody will ask again who was in sync
    if leadership is None or broker not in leadership.isr:
        draft.tell.metadata(draft.state.brokers, (tp,))
        return
    isr = tuple(member for member in leadership.isr if member != broker) or leadership.isr
    leader = NO_BROKER if leadership.leader == broker else leadership.leader
    if (leader, isr) == (leadership.leader, leadership.isr):
        return  # the last one was offline already
    epoch = LeaderEpoch(leadership.leader_epoch + 1)
    draft.lead(tp, Leadership(leader, isr, epoch, draft.state.epoch, 0))
    others = [b for b in partition.replicas if b != broker and draft.state.is_online(b, tp)]
    draft.tell.leader_and_isr(others, tp)
    draft.tell.metadata(draft.state.brokers, (tp,))
