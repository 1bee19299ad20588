"""Moving a partition's replicas from some brokers to others.

Owns the two phases. First the new replicas join the old ones, and the topic's node says which are
coming and which will go, so that another controller can take over. When all that shall stay are
in sync, the leader moves if it must, the old replicas are removed, and the node says only what is.
Pure.
"""

from __future__ import annotations

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
    """Start, redirect or call off. The answer tells for each partition why it was refused."""
    draft = Draft(state)
    answer: dict[TopicPartition, KafkaError | None] = {}
    for tp, target in event.moves.items():
        try:
            _begin(draft, tp, _checked(state, tp, target, keep_factor=event.keep_factor))
        except KafkaError as refusal:
            answer[tp] = refusal
        else:
            answer[tp] = None
    if event.ask is None:
        draft.writes.append(store_operations.delete_reassignment())
    else:
        draft.reply(event.ask, answer)
    resume_reassignments(draft)
    return draft.step()


def resume_reassignments(draft: Draft) -> None:
    """Go on with every move: start replicas on brokers that came, end what is in sync."""
    moving = [
        TopicPartition(name, number)
        for name, topic in draft.topics.items()
        if name not in draft.state.deletions or not draft.state.deletions[name].started
        for number, partition in topic.partitions.items()
        if partition.is_moving
    ]
    for tp in moving:
        partition = draft.partition(tp)
        if set(partition.target) <= set(partition.isr):
            _finish(draft, tp)
        else:
            _start_new(draft, tp)
    if moving:
        deletion.retry_deletions(draft)


def _checked(
    state: ControllerState, tp: TopicPartition, target: Replicas | None, *, keep_factor: bool
) -> Replicas:
    topic = state.topics.get(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    if partition is None or tp.topic in state.deletions:
        raise KafkaError(ErrorCode.unknown_topic_or_partition, "The partition does not exist.")
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


def _begin(draft: Draft, tp: TopicPartition, target: Replicas) -> None:
    """Write where it goes; a replica no longer wanted of an earlier move is dropped at once."""
    partition = draft.partition(tp)
    origin = tuple(broker for broker in partition.replicas if broker not in partition.adding)
    everybody = target + tuple(broker for broker in origin if broker not in target)
    unwanted = [broker for broker in partition.replicas if broker not in everybody]
    moving = replace(
        partition,
        replicas=everybody,
        adding=tuple(broker for broker in target if broker not in origin),
        removing=tuple(broker for broker in origin if broker not in target),
    )
    _assign(draft, tp, moving)
    _remove(draft, tp, unwanted)
    if moving.is_moving:
        _start_new(draft, tp)
        partitions.bump_epoch(draft, tp, _online(draft, tp, everybody))


def _start_new(draft: Draft, tp: TopicPartition) -> None:
    partition = draft.partition(tp)
    fresh = [
        Replica(tp, broker)
        for broker in partition.adding
        if replicas.state_of(partition, broker) is R.NON_EXISTENT and broker in draft.state.brokers
    ]
    replicas.move(draft, fresh, R.NEW)


def _finish(draft: Draft, tp: TopicPartition) -> None:
    """All that shall stay are in sync: hand over, remove the rest, write what is now so."""
    partition = draft.partition(tp)
    started = [
        Replica(tp, broker)
        for broker in partition.target
        if replicas.state_of(partition, broker) is R.NEW
    ]
    replicas.move(draft, started, R.ONLINE)
    if partition.leader in partition.target and draft.state.is_online(partition.leader, tp):
        partitions.bump_epoch(draft, tp, _online(draft, tp, partition.replicas))
    elif partitions.bring_online(draft, [tp], partitions.reassigned):
        return  # nobody of the target can lead yet: what comes back will resume this
    gone = partition.removing
    _assign(
        draft, tp, replace(draft.partition(tp), replicas=partition.target, adding=(), removing=())
    )
    _remove(draft, tp, gone)
    draft.tell.metadata(draft.state.brokers, (tp,))


def _remove(
    draft: Draft, tp: TopicPartition, brokers: tuple[BrokerId, ...] | list[BrokerId]
) -> None:
    """Stop and delete. Nobody waits for the answer: a replica left over is found at its start."""
    gone = [Replica(tp, broker) for broker in brokers]
    known = [
        r for r in gone if replicas.state_of(draft.partition(tp), r.broker) is not R.NON_EXISTENT
    ]
    for to in (R.OFFLINE, R.DELETION_STARTED, R.DELETION_SUCCESSFUL, R.NON_EXISTENT):
        replicas.move(draft, known, to)


def _assign(draft: Draft, tp: TopicPartition, partition: PartitionAssignment) -> None:
    before = draft.topics[tp.topic]
    draft.put(tp, partition)
    topic = draft.topics[tp.topic]
    draft.writes.append(store_operations.set_topic(tp.topic, topic, before.version))
    draft.put_topic(tp.topic, replace(topic, version=before.version + 1))


def _online(draft: Draft, tp: TopicPartition, brokers: Replicas) -> list[BrokerId]:
    return [broker for broker in brokers if draft.state.is_online(broker, tp)]
