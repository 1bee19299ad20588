"""The first thing an active controller does: believe what the store holds, and tell everybody.

Owns the order of CTL-17: brokers hear who is alive, replicas come online, partitions without a
leader get one, and what an earlier controller left unfinished goes on. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.controller import (
    brokers,
    deletion,
    partitions,
    reassignment,
    replicas,
    store_operations,
    topics,
)
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import Elected
from ottla.controller.state import (
    ControllerState,
    Deletion,
    PartitionAssignment,
    PartitionState,
    ReplicaState,
    TopicAssignment,
)
from ottla.model.ids import TopicPartition


def on_elected(state: ControllerState, event: Elected) -> Step:
    wanted = event.deletions if state.rules.delete_topic_enable else frozenset[str]()
    waiting = {name: going.asks for name, going in state.deletions.items()}
    deletions = {
        name: Deletion(asks=waiting.get(name, ())) for name in sorted(wanted & event.topics.keys())
    }
    believed = {name: _believed(topic, event) for name, topic in event.topics.items()}
    draft = Draft(
        replace(
            state,
            epoch=event.epoch,
            epoch_version=event.epoch_version,
            brokers=event.brokers,
            topics=believed,
            deletions=deletions,
            unclean=event.unclean,
        )
    )
    draft.writes += store_operations.delete_all(event.notifications)
    refused = event.deletions - deletions.keys()
    draft.writes += [store_operations.delete_deletion(name) for name in sorted(refused)]
    draft.tell.introduce(event.brokers)
    everything = [tp for tp, _ in draft.state.partitions()]
    draft.tell.metadata(event.brokers, everything)
    brokers.start_replicas(draft, event.brokers)
    _lead(draft, event, everything)
    _leave_behind_the_dead(draft, everything)
    reassignment.resume_reassignments(draft)
    deletion.resume_deletions(draft)
    return draft.step()


def _lead(draft: Draft, event: Elected, tps: list[TopicPartition]) -> None:
    staying = [tp for tp in tps if tp.topic not in draft.state.deletions]
    unborn = [tp for tp in staying if draft.partition(tp).state is PartitionState.NON_EXISTENT]
    for name in sorted({tp.topic for tp in unborn} | event.ids.keys()):
        topics.topic_from_store(draft, name, event.ids.get(name))
    topics.bring_online(draft, unborn)
    leaderless = [tp for tp in staying if draft.partition(tp).state is PartitionState.OFFLINE]
    partitions.bring_online(draft, leaderless, partitions.offline)
    if event.returned:
        _begin_anew(draft, set(staying) - {*unborn, *leaderless})


def _begin_anew(draft: Draft, tps: set[TopicPartition]) -> None:
    """A leader that was away leads on, under a new epoch: its log may end earlier than it did, and
    a reader that had seen more must be able to tell."""
    for tp in sorted(tps):
        leadership = draft.partition(tp).leadership
        if leadership is not None and leadership.leader == draft.state.broker_id:
            partitions.bump_epoch(draft, tp, draft.live_replicas(tp))


def _leave_behind_the_dead(draft: Draft, tps: list[TopicPartition]) -> None:
    """Brokers that died while nobody was controller leave the ISRs now."""
    staying = [tp for tp in tps if tp.topic not in draft.state.deletions]
    dead = [
        replica
        for replica in replicas.of(draft, staying)
        if replicas.state_of(draft.partition(replica.tp), replica.broker) is ReplicaState.OFFLINE
    ]
    replicas.move(draft, dead, ReplicaState.OFFLINE)


def _believed(topic: TopicAssignment, event: Elected) -> TopicAssignment:
    """States follow from who is alive; a partition that never had a leader is yet to be born."""
    return replace(
        topic,
        partitions={
            number: _state_of(partition, event) if partition.leadership else partition
            for number, partition in topic.partitions.items()
        },
    )


def _state_of(partition: PartitionAssignment, event: Elected) -> PartitionAssignment:
    led = partition.leader in event.brokers
    return replace(
        partition,
        state=PartitionState.ONLINE if led else PartitionState.OFFLINE,
        replica_states={
            broker: ReplicaState.ONLINE if broker in event.brokers else ReplicaState.OFFLINE
            for broker in partition.replicas
        },
    )
