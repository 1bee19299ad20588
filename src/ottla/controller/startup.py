"""The first event of an active controller: take over the state from the store.

Owns the order of CTL-17: brokers get the live brokers, replicas come online, partitions without a
leader get one, and unfinished work of an earlier controller is resumed. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.controller import (
    brokers,
    deletion,
    election,
    lost_disks,
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
    Leadership,
    PartitionAssignment,
    PartitionState,
    Replicas,
    ReplicaState,
    TopicAssignment,
)
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition


def on_elected(state: ControllerState, event: Elected) -> Step:
    requested = event.deletions if state.rules.delete_topic_enable else frozenset[str]()
    waiting = {name: ongoing.request_ids for name, ongoing in state.deletions.items()}
    deletions = {
        name: Deletion(request_ids=waiting.get(name, ()))
        for name in sorted(requested & event.topics.keys())
    }
    same = {  # a broker that restarted has left this behind
        id for id, broker in event.brokers.items() if state.brokers.get(id, broker) == broker
    }
    loaded_topics = {name: _with_states(topic, event) for name, topic in event.topics.items()}
    draft = Draft(
        replace(
            state,
            epoch=event.epoch,
            epoch_version=event.epoch_version,
            brokers=event.brokers,
            shutting_down=state.shutting_down & same,
            failed_directories={
                id: tps for id, tps in state.failed_directories.items() if id in same
            },
            topics=loaded_topics,
            deletions=deletions,
            unclean=event.unclean,
        )
    )
    draft.writes += store_operations.delete_all(event.notifications)
    refused = event.deletions - deletions.keys()
    draft.writes += [store_operations.delete_deletion(name) for name in sorted(refused)]
    draft.requests.send_live_brokers_first(event.brokers)
    all_partitions = [tp for tp, _ in draft.state.partitions()]
    draft.requests.full_metadata(event.brokers, all_partitions)
    lost_disks.leave_isrs(draft, event.lost_disks)
    renewed = _remove_restarted(draft, event)
    brokers.start_replicas(draft, event.brokers)
    _elect_leaders(draft, event, [tp for tp in all_partitions if tp not in renewed])
    _remove_dead_from_isrs(draft, all_partitions)
    reassignment.resume_reassignments(draft)
    deletion.resume_deletions(draft)
    return draft.step()


def _remove_restarted(draft: Draft, event: Elected) -> set[TopicPartition]:
    """Brokers that restarted while there was no controller leave the ISRs that list them.

    Such a broker registered after the state was written: it may have lost records. If no other live
    replica is in sync they all stay, because nobody has more. Each partition gets a new leader
    epoch; returns these partitions.
    """
    renewed: set[TopicPartition] = set()
    for name, topic in list(draft.topics.items()):
        if name in draft.state.deletions:
            continue
        for number, partition in topic.partitions.items():
            tp = TopicPartition(name, number)
            now = draft.partition(tp).leadership  # without brokers that lost their disks
            if partition.leadership is None or now is None:
                continue
            restarted = _registered_after(partition.leadership.written, now.isr, event)
            if not restarted:
                continue
            stayed = tuple(b for b in now.isr if b in event.brokers and b not in restarted)
            choice = election.when_offline(
                partition.replicas, stayed or now.isr, event.brokers.keys(), unclean_allowed=False
            )
            if choice is None:
                continue
            leader = now.leader if now.leader in choice.isr else choice.leader
            epoch = LeaderEpoch(now.leader_epoch + 1)
            draft.lead(tp, Leadership(leader, choice.isr, epoch, event.epoch, 0))
            draft.put(tp, replace(draft.partition(tp), state=PartitionState.ONLINE))
            renewed.add(tp)
    return renewed


def _registered_after(written: int, isr: Replicas, event: Elected) -> set[BrokerId]:
    """Brokers of the ISR that registered after this write of its state."""
    return {id for id in isr if id in event.brokers and event.brokers[id].epoch > written}


def _elect_leaders(draft: Draft, event: Elected, tps: list[TopicPartition]) -> None:
    staying = [tp for tp in tps if tp.topic not in draft.state.deletions]
    new = [tp for tp in staying if draft.partition(tp).state is PartitionState.NON_EXISTENT]
    for name in sorted({tp.topic for tp in new} | event.ids.keys()):
        topics.topic_from_store(draft, name, event.ids.get(name))
    topics.bring_online(draft, new)
    leaderless = [tp for tp in staying if draft.partition(tp).state is PartitionState.OFFLINE]
    partitions.bring_online(draft, leaderless, partitions.offline_election)
    if event.restarted:
        _bump_own_epochs(draft, set(staying) - {*new, *leaderless})


def _bump_own_epochs(draft: Draft, tps: set[TopicPartition]) -> None:
    """A restarted leader gets a new epoch: its log may be shorter than before, and consumers that
    have read further must be able to detect that."""
    for tp in sorted(tps):
        leadership = draft.partition(tp).leadership
        if leadership is not None and leadership.leader == draft.state.broker_id:
            partitions.bump_epoch(draft, tp, draft.live_replicas(tp))


def _remove_dead_from_isrs(draft: Draft, tps: list[TopicPartition]) -> None:
    """Remove brokers that died while there was no controller from the ISRs."""
    staying = [tp for tp in tps if tp.topic not in draft.state.deletions]
    dead = [
        replica
        for replica in replicas.of(draft, staying)
        if replicas.state_of(draft.partition(replica.tp), replica.broker) is ReplicaState.OFFLINE
    ]
    replicas.move(draft, dead, ReplicaState.OFFLINE)


def _with_states(topic: TopicAssignment, event: Elected) -> TopicAssignment:
    """Derive the states from the live brokers; a partition without leadership is still new."""
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
