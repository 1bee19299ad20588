"""New topics and new partitions, requested by clients or found in the store.

Owns what is checked before a topic is created and how its partitions come online. A requested
topic is written in one step, with its nodes, settings and first leaders, so that it is never
partly visible. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ottla.controller import partitions, placement, replicas, store_operations, topic_rules
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import (
    MorePartitions,
    NewTopic,
    PartitionCreationRequested,
    PartitionsReloaded,
    RulesChanged,
    TopicCreationRequested,
    TopicsReloaded,
    UncleanElectionEnabled,
)
from ottla.controller.state import (
    BrokerState,
    ControllerState,
    PartitionAssignment,
    PartitionState,
    Replicas,
    ReplicaState,
    TopicAssignment,
)
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition

UNCLEAN = "unclean.leader.election.enable"


class Created(NamedTuple):
    """The result of a topic creation, or of its validation."""

    id: TopicId
    partition_count: int
    replication_factor: int


def on_topic_creation_requested(state: ControllerState, event: TopicCreationRequested) -> Step:
    """Create the valid topics; the reply has a result or an error for each name."""
    draft = Draft(state)
    answer: dict[str, Created | KafkaError] = {}
    budget = _budget(state, event)
    metric_names: dict[str, str] = {}
    if any(topic_rules.may_collide(new.name) for new in event.topics):
        metric_names = {topic_rules.metric_name(name): name for name in state.topics}
    for new in event.topics:
        existing = state.topics.get(new.name)
        if existing is not None and existing.id == new.id != NO_TOPIC_ID:
            factor = len(existing.partitions[0].replicas)  # an earlier attempt met a conflict
            answer[new.name] = Created(new.id, len(existing.partitions), factor)
            continue
        try:
            assignment = _assignment(draft, new, budget, metric_names)
        except KafkaError as refusal:
            answer[new.name] = refusal
            continue
        budget -= len(assignment)
        factor = len(assignment[0])
        answer[new.name] = Created(
            NO_TOPIC_ID if event.validate_only else new.id, len(assignment), factor
        )
        if not event.validate_only:
            _create(draft, new, assignment)
            metric_names[topic_rules.metric_name(new.name)] = new.name
    draft.reply(event.request_id, answer)
    return draft.step()


def on_partition_creation_requested(
    state: ControllerState, event: PartitionCreationRequested
) -> Step:
    draft = Draft(state)
    answer: dict[str, KafkaError | None] = {}
    budget = _budget(state, event)
    for more in event.topics:
        try:
            added = _new_partitions(draft, more, budget)
        except KafkaError as refusal:
            answer[more.name] = refusal
            continue
        budget -= len(added)
        answer[more.name] = None
        if not event.validate_only:
            topic = draft.topics[more.name]
            grown = _with_partitions(topic, added)
            draft.writes.append(store_operations.set_topic(more.name, grown, topic.version))
            draft.put_topic(more.name, replace(grown, version=topic.version + 1))
            bring_online(draft, [TopicPartition(more.name, number) for number in added])
    draft.reply(event.request_id, answer)
    return draft.step()


def on_topics_changed(state: ControllerState, event: TopicsReloaded) -> Step:
    """Bring topics written by others online; drop topics whose nodes were deleted."""
    draft = Draft(state)
    deleted = state.topics.keys() - event.names
    for name in sorted(deleted):
        for request_id in state.deletions[name].request_ids if name in state.deletions else ():
            draft.reply(request_id, ErrorCode.none)
        draft.drop_topic(name)
    if deleted & state.deletions.keys():
        remaining = {
            name: ongoing for name, ongoing in state.deletions.items() if name not in deleted
        }
        draft.state = replace(draft.state, deletions=remaining)
    for name in sorted(event.new.keys() - state.topics.keys()):
        draft.put_topic(name, event.new[name])
        topic_from_store(draft, name, event.ids.get(name))
        bring_online(draft, [TopicPartition(name, number) for number in event.new[name].partitions])
    return draft.step()


def on_partitions_changed(state: ControllerState, event: PartitionsReloaded) -> Step:
    """Partitions were added to a topic's node; undone if the topic is being deleted."""
    topic = state.topics.get(event.name)
    if topic is None or event.topic.version <= topic.version:
        return Step(state)
    draft = Draft(state)
    added = {
        number: partition.replicas
        for number, partition in event.topic.partitions.items()
        if number not in topic.partitions
    }
    if event.name in state.deletions:
        if added:
            draft.writes.append(store_operations.set_topic(event.name, topic, event.topic.version))
            draft.put_topic(event.name, replace(topic, version=event.topic.version + 1))
        return draft.step()
    draft.put_topic(
        event.name, replace(_with_partitions(topic, added), version=event.topic.version)
    )
    bring_online(draft, [TopicPartition(event.name, number) for number in added])
    return draft.step()


def on_unclean_election_enabled(state: ControllerState, event: UncleanElectionEnabled) -> Step:
    """Unclean election was enabled for a topic: elect leaders for its offline partitions."""
    unclean = {name: allowed for name, allowed in state.unclean.items() if name != event.topic}
    if event.allowed is not None:
        unclean[event.topic] = event.allowed
    draft = Draft(replace(state, unclean=unclean))
    _elect_offline(draft, [event.topic])
    return draft.step()


def on_rules_changed(state: ControllerState, event: RulesChanged) -> Step:
    draft = Draft(replace(state, rules=event.rules))
    if event.rules.unclean_leader_election_enable:
        _elect_offline(draft, draft.topics)
    return draft.step()


def _elect_offline(draft: Draft, names: Iterable[str]) -> None:
    offline = [
        TopicPartition(name, number)
        for name in names
        if name in draft.topics and name not in draft.state.deletions
        for number, partition in draft.topics[name].partitions.items()
        if partition.state is PartitionState.OFFLINE
    ]
    partitions.bring_online(draft, offline, partitions.offline_election)


def topic_from_store(draft: Draft, name: str, id: TopicId | None) -> None:
    """Complete a topic written by others: the parent of the states, and an id if missing."""
    draft.writes.append(store_operations.create_partitions_node(name))
    topic = draft.topics[name]
    if id is not None and topic.id == NO_TOPIC_ID:
        named = replace(topic, id=id)
        draft.writes.append(store_operations.set_topic(name, named, topic.version))
        draft.put_topic(name, replace(named, version=topic.version + 1))


def bring_online(draft: Draft, tps: Iterable[TopicPartition]) -> None:
    """Start the replicas of new partitions, elect a first leader, update all metadata."""
    tps = list(tps)
    partitions.move(draft, tps, PartitionState.NEW)
    replicas.move(draft, replicas.of(draft, tps), ReplicaState.NEW)
    partitions.bring_online(draft, tps, partitions.offline_election)
    live = [r for r in replicas.of(draft, tps) if r.broker in draft.state.brokers]
    replicas.move(draft, live, ReplicaState.ONLINE)


def _create(draft: Draft, new: NewTopic, assignment: Mapping[int, Replicas]) -> None:
    topic = TopicAssignment(
        new.id, {n: PartitionAssignment(replicas) for n, replicas in assignment.items()}, 0
    )
    draft.writes += store_operations.create_topic(new.name, topic, new.config)
    draft.put_topic(new.name, topic)
    if UNCLEAN in new.config:
        allowed = new.config[UNCLEAN].strip().lower() == "true"
        draft.state = replace(draft.state, unclean={**draft.state.unclean, new.name: allowed})
    bring_online(draft, [TopicPartition(new.name, number) for number in assignment])


def _assignment(
    draft: Draft, new: NewTopic, budget: int, metric_names: Mapping[str, str]
) -> Mapping[int, Replicas]:
    topic_rules.check_name(new.name)
    if new.name in draft.topics:
        raise KafkaError(ErrorCode.topic_already_exists, f"Topic '{new.name}' already exists.")
    topic_rules.check_collision(new.name, metric_names)
    if new.assignment:
        counted = new.replication_factor != -1
        if counted or new.partition_count != -1:
            field = "replication factor" if counted else "numPartitions"
            raise KafkaError(
                ErrorCode.invalid_request,
                f"A manual partition assignment was specified, but {field} was not set to -1.",
            )
        _check_budget(len(new.assignment), budget)
        topic_rules.check_assignment(new.assignment, draft.state.brokers.keys())
        return new.assignment
    rules = draft.state.rules
    count = rules.num_partitions if new.partition_count == -1 else new.partition_count
    factor = new.replication_factor
    if factor == -1:
        factor = rules.default_replication_factor
    topic_rules.check_partition_count(count)
    topic_rules.check_replication_factor(factor)
    _check_budget(count, budget)
    return placement.place(_brokers_for(draft, factor), range(count), factor, new.randomness)


def _new_partitions(draft: Draft, more: MorePartitions, budget: int) -> Mapping[int, Replicas]:
    topic = draft.topics.get(more.name)
    if topic is None or more.name in draft.state.deletions:
        raise KafkaError(ErrorCode.unknown_topic_or_partition)
    if any(partition.is_moving for partition in topic.partitions.values()):
        raise KafkaError(
            ErrorCode.reassignment_in_progress,
            f"A partition reassignment is in progress for the topic '{more.name}'.",
        )
    now = len(topic.partitions)
    if more.total <= now:
        reason = (
            f"Topic already has {now} partition(s)."
            if more.total == now
            else f"The topic {more.name} currently has {now} partition(s); "
            f"{more.total} would not be an increase."
        )
        raise KafkaError(ErrorCode.invalid_partitions, reason)
    _check_budget(more.total - now, budget)
    factor = len(topic.partitions[0].replicas)
    if more.assignment is None:
        brokers = _brokers_for(draft, factor)
        randomness = placement.continued_from(brokers, topic.partitions[0].replicas[0])
        return placement.place(brokers, range(now, more.total), factor, randomness)
    if len(more.assignment) != more.total - now:
        raise KafkaError(
            ErrorCode.invalid_replica_assignment,
            f"Attempted to add {more.total - now} additional partition(s), but only "
            f"{len(more.assignment)} assignment(s) were specified.",
        )
    for replicas_ in more.assignment:
        topic_rules.check_replicas(replicas_, draft.state.brokers.keys(), factor)
    return dict(enumerate(more.assignment, start=now))


def _brokers_for(draft: Draft, factor: int) -> Mapping[BrokerId, BrokerState]:
    """Brokers that may get replicas: none that is shutting down, unless there are too few."""
    state = draft.state
    staying = {id: state.brokers[id] for id in state.brokers if id in state.live}
    return staying if len(staying) >= factor else state.brokers


def _with_partitions(topic: TopicAssignment, added: Mapping[int, Replicas]) -> TopicAssignment:
    new = {number: PartitionAssignment(replicas) for number, replicas in added.items()}
    return replace(topic, partitions={**topic.partitions, **new})


def _budget(
    state: ControllerState, event: TopicCreationRequested | PartitionCreationRequested
) -> int:
    limit = state.rules.partitions_per_request_max
    return limit if event.budget is None else event.budget


def _check_budget(count: int, budget: int) -> None:
    if count > budget:
        raise KafkaError(
            ErrorCode.policy_violation,
            "Excessively large number of partitions per request.",
        )
