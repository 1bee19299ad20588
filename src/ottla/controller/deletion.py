"""Topics on their way out.

Owns when a deletion may start, what it waits for and how it ends. A topic goes when every replica
has said that its files are gone; a replica that cannot say so (its broker is dead, its disk
failed) makes the topic ineligible until something changes. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ottla.controller import partitions, replicas, store_operations
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import DeletionRequested, DeletionsFound, StopReplicaReplied
from ottla.controller.replicas import Replica
from ottla.controller.request_batch import published
from ottla.controller.state import (
    ControllerState,
    Deletion,
    PartitionState,
    ReplicaState,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

R = ReplicaState


def on_deletion_requested(state: ControllerState, event: DeletionRequested) -> Step:
    draft = Draft(state)
    for name, ask in event.asks.items():
        if name not in state.topics:
            draft.reply(ask, ErrorCode.unknown_topic_or_partition)
        elif not state.rules.delete_topic_enable:
            draft.reply(ask, ErrorCode.topic_deletion_disabled)
        else:
            if name not in state.deletions:
                draft.writes.append(store_operations.create_deletion(name))
            _enqueue(draft, name, ask)
    resume_deletions(draft, event.asks)
    return draft.step()


def on_deletions_found(state: ControllerState, event: DeletionsFound) -> Step:
    """Somebody wrote the request into the store."""
    draft = Draft(state)
    unknown = event.names - state.topics.keys()
    refused = unknown if state.rules.delete_topic_enable else event.names
    draft.writes += [store_operations.delete_deletion(name) for name in sorted(refused)]
    for name in sorted(event.names - refused - state.deletions.keys()):
        _enqueue(draft, name, None)
    resume_deletions(draft)
    return draft.step()


def on_stop_replica_reply(state: ControllerState, event: StopReplicaReplied) -> Step:
    """A broker tells how the deletion of its replicas went."""
    broker = state.brokers.get(event.broker)
    if broker is None or broker.epoch != event.epoch:
        return Step(state)
    draft = Draft(state)
    waiting = {
        tp: code
        for tp, code in event.codes.items()
        if tp.topic in state.deletions
        and tp.partition in state.topics[tp.topic].partitions
        and replicas.state_of(draft.partition(tp), event.broker) is R.DELETION_STARTED
    }
    done = [tp for tp, code in waiting.items() if code is ErrorCode.none]
    replicas.move(draft, [Replica(tp, event.broker) for tp in done], R.DELETION_SUCCESSFUL)
    failed = [Replica(tp, event.broker) for tp in waiting.keys() - set(done)]
    replicas.move(draft, failed, R.DELETION_INELIGIBLE)
    for name in {replica.tp.topic for replica in failed}:
        _mark_ineligible(draft, name)
    resume_deletions(draft, {tp.topic for tp in waiting})
    return draft.step()


def on_replicas_lost(draft: Draft, lost: Iterable[Replica]) -> None:
    """A broker or disk went: what it was deleting cannot be confirmed now."""
    going = [replica for replica in lost if replica.tp.topic in draft.state.deletions]
    unconfirmed = [
        replica
        for replica in going
        if replicas.state_of(draft.partition(replica.tp), replica.broker) is R.DELETION_STARTED
    ]
    replicas.move(draft, unconfirmed, R.DELETION_INELIGIBLE)
    for name in {replica.tp.topic for replica in going}:
        _mark_ineligible(draft, name)


def retry_deletions(draft: Draft) -> None:
    """Something came back: no topic is ineligible until it shows itself so again."""
    for name, ongoing in draft.state.deletions.items():
        if ongoing.ineligible:
            _put(draft, name, replace(ongoing, ineligible=False))
    resume_deletions(draft)


def resume_deletions(draft: Draft, only: Collection[str] | None = None) -> None:
    """Complete what is done, start what may start; of these topics if they are named."""
    going = draft.state.deletions
    for name in sorted(going if only is None else going.keys() & set(only)):
        states = {
            replicas.state_of(draft.partition(replica.tp), replica.broker)
            for replica in _replicas(draft, name)
        }
        if states <= {R.DELETION_SUCCESSFUL}:
            _complete(draft, name)
        elif R.DELETION_STARTED not in states and _is_eligible(draft, name):
            _start(draft, name)


def _enqueue(draft: Draft, name: str, ask: int | None) -> None:
    ongoing = draft.state.deletions.get(name, Deletion())
    asks = ongoing.asks if ask is None else (*ongoing.asks, ask)
    _put(draft, name, replace(ongoing, asks=asks))
    if ask is not None and ongoing.ineligible:
        _mark_ineligible(draft, name)  # it will not end soon: say so now


def _is_eligible(draft: Draft, name: str) -> bool:
    moving = any(partition.is_moving for partition in draft.topics[name].partitions.values())
    return not moving and not draft.state.deletions[name].ineligible


def _start(draft: Draft, name: str) -> None:
    """Nobody may find the topic any more; then its replicas are told to remove their files."""
    _put(draft, name, replace(draft.state.deletions[name], started=True))
    existing = [
        tp
        for tp in _partitions(draft, name)
        if draft.partition(tp).state is not PartitionState.NON_EXISTENT
    ]
    partitions.move(draft, existing, PartitionState.OFFLINE)
    partitions.move(draft, existing, PartitionState.NON_EXISTENT)
    current = replace(draft.state, topics=draft.topics)
    gone = [published(current, tp, deleted=True) for tp in _partitions(draft, name)]
    draft.tell.deleted(draft.state.brokers, gone)
    left = [
        replica
        for replica in _replicas(draft, name)
        if replicas.state_of(draft.partition(replica.tp), replica.broker)
        is not R.DELETION_SUCCESSFUL
    ]
    _make_known(draft, left)
    replicas.move(draft, left, R.OFFLINE)
    alive = [r for r in left if draft.state.is_online(r.broker, r.tp)]
    replicas.move(draft, alive, R.DELETION_STARTED)
    dead = [r for r in left if not draft.state.is_online(r.broker, r.tp)]
    if dead:
        replicas.move(draft, dead, R.DELETION_INELIGIBLE)
        _mark_ineligible(draft, name)


def _make_known(draft: Draft, left: Iterable[Replica]) -> None:
    """A replica that never came up is deleted like the others: it may have left files behind."""
    unknown = [
        replica
        for replica in left
        if replicas.state_of(draft.partition(replica.tp), replica.broker) is R.NON_EXISTENT
    ]
    for tp, broker in unknown:
        partition = draft.partition(tp)
        states = {**partition.replica_states, broker: R.OFFLINE}
        draft.put(tp, replace(partition, replica_states=states))


def _complete(draft: Draft, name: str) -> None:
    replicas.move(draft, _replicas(draft, name), R.NON_EXISTENT)
    draft.writes += store_operations.delete_topic(name, draft.topics[name])
    for ask in draft.state.deletions[name].asks:
        draft.reply(ask, ErrorCode.none)
    deletions = {
        other: ongoing for other, ongoing in draft.state.deletions.items() if other != name
    }
    unclean = {other: allowed for other, allowed in draft.state.unclean.items() if other != name}
    draft.state = replace(draft.state, deletions=deletions, unclean=unclean)
    draft.drop_topic(name)


def _mark_ineligible(draft: Draft, name: str) -> None:
    """Those who wait hear success: the topic is out of sight, its last files go later."""
    ongoing = draft.state.deletions[name]
    for ask in ongoing.asks:
        draft.reply(ask, ErrorCode.none)
    _put(draft, name, replace(ongoing, ineligible=True, asks=()))


def _put(draft: Draft, name: str, ongoing: Deletion) -> None:
    draft.state = replace(draft.state, deletions={**draft.state.deletions, name: ongoing})


def _partitions(draft: Draft, name: str) -> list[TopicPartition]:
    return [TopicPartition(name, number) for number in draft.topics[name].partitions]


def _replicas(draft: Draft, name: str) -> list[Replica]:
    return replicas.of(draft, _partitions(draft, name))
