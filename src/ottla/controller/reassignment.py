"""Partition reassignment.

Owns the two phases. First the new replicas are added to the old ones, and the topic's node lists
both, so that another controller can take over. When all target replicas are in sync, the leader
moves if it must, the old replicas are removed, and the node lists the target replicas only.
Cancelling is a reassignment back: a new replica that is in sync stays until the old ones are,
because it may have records that they lack. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ottla.controller import deletion, partitions, replicas, store_operations, topic_rules
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import ReassignmentRequested
from ottla.controller.replicas import Replica
from ottla.controller.state import ControllerState, PartitionAssignment, Replicas, ReplicaState
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition

R = ReplicaState


def on_reassignment_requested(state: ControllerState, event: ReassignmentRequested) -> Step:
    """Start, change or cancel. The reply has for each partition the reason of a refusal."""
    draft = Draft(state)
    answer: dict[TopicPartition, KafkaError | None] = {}
    for tp, target in event.moves.items():
        try:
            _start(draft, tp, _check_target(state, tp, target, keep_factor=event.keep_factor))
        except KafkaError as refusal:
            answer[tp] = refusal
        else:
            answer[tp] = None
    if event.request_id is None:
        draft.writes.append(store_operations.delete_reassignment())
    else:
        draft.reply(event.request_id, answer)
    resume_reassignments(draft)
    deletion.resume_deletions(draft, {tp.topic for tp in event.moves})
    return draft.step()


def resume_reassignments(draft: Draft) -> None:
    """Continue all reassignments: start replicas on live brokers, complete those in sync."""
    resume(
        draft,
        [
            TopicPartition(name, number)
            for name, topic in draft.topics.items()
            for number, partition in topic.partitions.items()
            if partition.is_moving
        ],
    )


def resume(draft: Draft, tps: Iterable[TopicPartition]) -> None:
    """Continue the reassignments of these partitions, if they have one."""
    deletions = draft.state.deletions
    moving = [
        tp
        for tp in tps
        if draft.partition(tp).is_moving
        and not (tp.topic in deletions and deletions[tp.topic].started)
    ]
    for tp in moving:
        partition = draft.partition(tp)
        if set(partition.target) <= set(partition.isr):
            _finish(draft, tp)
        else:
            _start_replicas(draft, tp)
    if moving:
        deletion.retry_deletions(draft)


def _check_target(
    state: ControllerState, tp: TopicPartition, target: Replicas | None, *, keep_factor: bool
) -> Replicas:
    topic = state.topics.get(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    deleting = state.deletions.get(tp.topic)
    is_deleted = deleting is not None and (deleting.started or target is not None)
    if topic is None or is_deleted:
        raise KafkaError(
            ErrorCode.unknown_topic_or_partition, f"Unable to find a topic named {tp.topic}."
        )
    if partition is None:
        raise KafkaError(
            ErrorCode.unknown_topic_or_partition,
            f"Unable to find partition {tp.topic}:{tp.partition}.",
        )
    if target is None:
        if not partition.is_moving:
            raise KafkaError(ErrorCode.no_reassignment_in_progress)
        return tuple(broker for broker in partition.replicas if broker not in partition.adding)
    topic_rules.check_replicas(target, state.brokers.keys(), len(target))
    if keep_factor and len(target) != len(partition.target):
        raise KafkaError(
            ErrorCode.invalid_replication_factor,
            f"The replication factor is changed from {len(partition.target)} to {len(target)}.",
        )
    return target


def _start(draft: Draft, tp: TopicPartition, target: Replicas) -> None:
    """Write the target; replicas that only an earlier reassignment added are removed at once, or
    at the end if they are in sync."""
    partition = draft.partition(tp)
    origin = tuple(broker for broker in partition.replicas if broker not in partition.adding)
    leaving = tuple(
        broker
        for broker in (*origin, *partition.adding)
        if broker not in target and (broker in origin or broker in partition.isr)
    )
    all_replicas = target + leaving
    dropped = [broker for broker in partition.replicas if broker not in all_replicas]
    moving = replace(
        partition,
        replicas=all_replicas,
        adding=tuple(broker for broker in target if broker not in origin),
        removing=leaving,
    )
    _assign(draft, tp, moving)
    _remove(draft, tp, dropped)
    if moving.is_moving:
        _start_replicas(draft, tp)
        if moving.leadership is not None:
            partitions.bump_epoch(draft, tp, _online(draft, tp, all_replicas))
        else:  # it never had a leader, and a new replica may be the first
            partitions.bring_online(draft, [tp], partitions.offline_election)


def _start_replicas(draft: Draft, tp: TopicPartition) -> None:
    partition = draft.partition(tp)
    new = [
        Replica(tp, broker)
        for broker in partition.adding
        if replicas.state_of(partition, broker) is R.NON_EXISTENT and broker in draft.state.brokers
    ]
    replicas.move(draft, new, R.NEW)


def _finish(draft: Draft, tp: TopicPartition) -> None:
    """All target replicas are in sync: move the leader, remove the others, write the result."""
    partition = draft.partition(tp)
    started = [
        Replica(tp, broker)
        for broker in partition.target
        if replicas.state_of(partition, broker) is R.NEW
    ]
    replicas.move(draft, started, R.ONLINE)
    if partition.leader in partition.target and draft.state.is_online(partition.leader, tp):
        partitions.bump_epoch(draft, tp, _online(draft, tp, partition.replicas))
    elif partitions.bring_online(draft, [tp], partitions.reassigned_election):
        return  # no target replica can lead yet; resumed when a broker comes back
    removed = partition.removing
    _assign(
        draft, tp, replace(draft.partition(tp), replicas=partition.target, adding=(), removing=())
    )
    _remove(draft, tp, removed)
    draft.requests.metadata(draft.state.brokers, (tp,))


def _remove(
    draft: Draft, tp: TopicPartition, brokers: tuple[BrokerId, ...] | list[BrokerId]
) -> None:
    """Stop and delete. The reply is not awaited: a leftover is deleted when its broker starts."""
    removed = [Replica(tp, broker) for broker in brokers]
    existing = [
        r for r in removed if replicas.state_of(draft.partition(tp), r.broker) is not R.NON_EXISTENT
    ]
    for to in (R.OFFLINE, R.DELETION_STARTED, R.DELETION_SUCCESSFUL, R.NON_EXISTENT):
        replicas.move(draft, existing, to)


def _assign(draft: Draft, tp: TopicPartition, partition: PartitionAssignment) -> None:
    before = draft.topics[tp.topic]
    draft.put(tp, partition)
    topic = draft.topics[tp.topic]
    draft.writes.append(store_operations.set_topic(tp.topic, topic, before.version))
    draft.put_topic(tp.topic, replace(topic, version=before.version + 1))


def _online(draft: Draft, tp: TopicPartition, brokers: Replicas) -> list[BrokerId]:
    return [broker for broker in brokers if draft.state.is_online(broker, tp)]
