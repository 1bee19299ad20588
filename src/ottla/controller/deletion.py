"""Topic deletion.

Owns when a deletion may start, what it waits for and how it completes. A topic is deleted when
every replica has confirmed that its files are removed; a replica that cannot confirm (dead broker,
failed disk) makes the topic ineligible until it is back. A broker that could not delete one for a
passing reason tries again by itself, and then notifies the controller. Pure.
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
    for name, request_id in event.request_ids.items():
        if name not in state.topics:
            draft.reply(request_id, ErrorCode.unknown_topic_or_partition)
        elif not state.rules.delete_topic_enable:
            draft.reply(request_id, ErrorCode.topic_deletion_disabled)
        else:
            if name not in state.deletions:
                draft.writes.append(store_operations.create_deletion(name))
            _enqueue(draft, name, request_id)
    resume_deletions(draft, event.request_ids)
    return draft.step()


def on_deletions_found(state: ControllerState, event: DeletionsFound) -> Step:
    """The request was written into the store by a tool or another broker."""
    draft = Draft(state)
    unknown = event.names - state.topics.keys()
    refused = unknown if state.rules.delete_topic_enable else event.names
    draft.writes += [store_operations.delete_deletion(name) for name in sorted(refused)]
    for name in sorted(event.names - refused - state.deletions.keys()):
        _enqueue(draft, name, None)
    resume_deletions(draft)
    return draft.step()


def on_stop_replica_reply(state: ControllerState, event: StopReplicaReplied) -> Step:
    """Record which replicas a broker has deleted and which it could not."""
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
    failed_before = state.failed_directories.get(event.broker, frozenset())
    if not failed_before.isdisjoint(done):  # nothing is left that could have failed
        still_failed = {**state.failed_directories, event.broker: failed_before - set(done)}
        draft.state = replace(draft.state, failed_directories=still_failed)
    failed = [Replica(tp, event.broker) for tp in waiting.keys() - set(done)]
    replicas.move(draft, failed, R.DELETION_INELIGIBLE)
    for name in {replica.tp.topic for replica in failed}:
        _mark_ineligible(draft, name)
    resume_deletions(draft, {tp.topic for tp in waiting})
    return draft.step()


def on_replicas_lost(draft: Draft, lost: Iterable[Replica]) -> None:
    """A broker or disk failed: deletions running there cannot be confirmed now."""
    affected = [replica for replica in lost if replica.tp.topic in draft.state.deletions]
    unconfirmed = [
        replica
        for replica in affected
        if replicas.state_of(draft.partition(replica.tp), replica.broker) is R.DELETION_STARTED
    ]
    replicas.move(draft, unconfirmed, R.DELETION_INELIGIBLE)
    led = [tp for tp, broker in affected if draft.partition(tp).leader == broker]
    online = [tp for tp in led if draft.partition(tp).state is PartitionState.ONLINE]
    partitions.move(draft, online, PartitionState.OFFLINE)  # nobody elects another leader
    for name in {replica.tp.topic for replica in affected}:
        _mark_ineligible(draft, name)


def retry_deletions(draft: Draft) -> None:
    """A broker or disk came back: try the ineligible topics again."""
    for name, ongoing in draft.state.deletions.items():
        if ongoing.ineligible:
            draft.put_deletion(name, replace(ongoing, ineligible=False))
    resume_deletions(draft)


def resume_deletions(draft: Draft, only: Collection[str] | None = None) -> None:
    """Complete and start deletions where possible; only of these topics if they are named."""
    deletions = draft.state.deletions
    deleted: set[str] = set()
    for name in sorted(deletions if only is None else deletions.keys() & set(only)):
        states = {
            replicas.state_of(draft.partition(replica.tp), replica.broker)
            for replica in _replicas(draft, name)
        }
        if states <= {R.DELETION_SUCCESSFUL}:
            _complete(draft, name)
            deleted.add(name)
        elif R.DELETION_STARTED not in states and _is_eligible(draft, name):
            _start(draft, name)
    if deleted:
        _forget(draft, deleted)


def _enqueue(draft: Draft, name: str, request_id: int | None) -> None:
    ongoing = draft.state.deletions.get(name, Deletion())
    waiting = ongoing.request_ids
    if request_id is not None:
        waiting = (*waiting, request_id)
    draft.put_deletion(name, replace(ongoing, request_ids=waiting))
    if request_id is not None and ongoing.ineligible:
        _mark_ineligible(draft, name)  # it will not complete soon: reply now


def _is_eligible(draft: Draft, name: str) -> bool:
    """A reassignment comes first, unless it cannot go on without a leader."""
    moving = any(
        partition.is_moving and partition.state is PartitionState.ONLINE
        for partition in draft.topics[name].partitions.values()
    )
    return not moving and not draft.state.deletions[name].ineligible


def _start(draft: Draft, name: str) -> None:
    """Remove the topic from the metadata, then send its replicas StopReplica with delete."""
    draft.put_deletion(name, replace(draft.state.deletions[name], started=True))
    existing = [
        tp
        for tp in _partitions(draft, name)
        if draft.partition(tp).state is not PartitionState.NON_EXISTENT
    ]
    partitions.move(draft, existing, PartitionState.OFFLINE)
    partitions.move(draft, existing, PartitionState.NON_EXISTENT)
    current = replace(draft.state, topics=draft.topics)
    deleted = [published(current, tp, deleted=True) for tp in _partitions(draft, name)]
    draft.requests.deleted(draft.state.brokers, deleted)
    remaining = [
        replica
        for replica in _replicas(draft, name)
        if replicas.state_of(draft.partition(replica.tp), replica.broker)
        is not R.DELETION_SUCCESSFUL
    ]
    _set_unknown_offline(draft, remaining)
    replicas.move(draft, remaining, R.OFFLINE)
    # A replica that its broker could not open may well be deleted: only its broker knows.
    alive = [r for r in remaining if r.broker in draft.state.brokers]
    replicas.move(draft, alive, R.DELETION_STARTED)
    dead = [r for r in remaining if r.broker not in draft.state.brokers]
    if dead:
        replicas.move(draft, dead, R.DELETION_INELIGIBLE)
        _mark_ineligible(draft, name)


def _set_unknown_offline(draft: Draft, remaining: Iterable[Replica]) -> None:
    """Replicas that never started are deleted as well: they may have left files behind."""
    unknown = [
        replica
        for replica in remaining
        if replicas.state_of(draft.partition(replica.tp), replica.broker) is R.NON_EXISTENT
    ]
    for tp, broker in unknown:
        partition = draft.partition(tp)
        states = {**partition.replica_states, broker: R.OFFLINE}
        draft.put(tp, replace(partition, replica_states=states))


def _complete(draft: Draft, name: str) -> None:
    replicas.move(draft, _replicas(draft, name), R.NON_EXISTENT)
    draft.writes += store_operations.delete_topic(name, draft.topics[name])
    for request_id in draft.state.deletions[name].request_ids:
        draft.reply(request_id, ErrorCode.none)
    draft.drop_topic(name)


def _forget(draft: Draft, deleted: Collection[str]) -> None:
    """Remove deleted topics from the state: all of a step at once, because each makes copies."""
    state = draft.state
    deletions = {name: ongoing for name, ongoing in state.deletions.items() if name not in deleted}
    unclean = {name: allowed for name, allowed in state.unclean.items() if name not in deleted}
    draft.state = replace(state, deletions=deletions, unclean=unclean)


def _mark_ineligible(draft: Draft, name: str) -> None:
    """Reply with success: the topic is no longer visible, its last files are deleted later."""
    ongoing = draft.state.deletions[name]
    for request_id in ongoing.request_ids:
        draft.reply(request_id, ErrorCode.none)
    draft.put_deletion(name, replace(ongoing, ineligible=True, request_ids=()))


def _partitions(draft: Draft, name: str) -> list[TopicPartition]:
    return [TopicPartition(name, number) for number in draft.topics[name].partitions]


def _replicas(draft: Draft, name: str) -> list[Replica]:
    return replicas.of(draft, _partitions(draft, name))
