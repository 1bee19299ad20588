"""The replica state machine: from new through online and offline to deleted.

Owns the effects of each transition of a replica. An illegal transition is logged and skipped.
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
            draft.warn(
                f"ignored illegal state change of replica {broker} of partition {tp} from "
                f"{now.value} to {to.value}"
            )
            continue
        match to:
            case R.NEW:
                _send_leadership(draft, tp, broker, is_new=True)
            case R.ONLINE if now is R.NEW:
                _add_to_assignment(draft, tp, broker)
            case R.ONLINE:
                _send_leadership(draft, tp, broker, is_new=False)
            case R.OFFLINE:
                if broker in draft.state.brokers:  # not for a broker that is just joining
                    draft.requests.stop(broker, tp, delete=False)
                _remove_from_isr(draft, tp, broker)
            case R.DELETION_STARTED:
                draft.requests.stop(broker, tp, delete=True)
        _set_state(draft, tp, broker, to)


def _set_state(draft: Draft, tp: TopicPartition, broker: BrokerId, to: ReplicaState) -> None:
    partition = draft.partition(tp)
    states = {**partition.replica_states, broker: to}
    if to is R.NON_EXISTENT:
        del states[broker]
    draft.put(tp, replace(partition, replica_states=states))


def _send_leadership(draft: Draft, tp: TopicPartition, broker: BrokerId, *, is_new: bool) -> None:
    """A replica can start only if the partition has a leader."""
    if draft.partition(tp).leadership is not None:
        draft.requests.leader_and_isr((broker,), tp, is_new=is_new)
        draft.requests.metadata(draft.state.brokers, (tp,))


def _add_to_assignment(draft: Draft, tp: TopicPartition, broker: BrokerId) -> None:
    partition = draft.partition(tp)
    if broker not in partition.replicas:
        draft.warn(f"replica {broker} is missing in the assignment of partition {tp}; added it")
        draft.put(tp, replace(partition, replicas=(*partition.replicas, broker)))


def _remove_from_isr(draft: Draft, tp: TopicPartition, broker: BrokerId) -> None:
    """The last in-sync replica stays in the ISR: only it has all records."""
    partition = draft.partition(tp)
    leadership = partition.leadership
    if tp.topic in draft.state.deletions:
        return  # the ISR no longer matters
    if leadership is None or broker not in leadership.isr:
        draft.requests.metadata(draft.state.brokers, (tp,))
        return
    isr = tuple(member for member in leadership.isr if member != broker) or leadership.isr
    leader = NO_BROKER if leadership.leader == broker else leadership.leader
    if (leader, isr) == (leadership.leader, leadership.isr):
        return  # it is the last one and not the leader: nothing changes
    epoch = LeaderEpoch(leadership.leader_epoch + 1)
    draft.lead(tp, Leadership(leader, isr, epoch, draft.state.epoch, 0))
    others = [b for b in partition.replicas if b != broker and draft.state.is_online(b, tp)]
    draft.requests.leader_and_isr(others, tp)
    draft.requests.metadata(draft.state.brokers, (tp,))
