"""New topics and new partitions, asked for or found in the store.

Owns what is checked before a topic exists and how its partitions come up. A topic asked for is
written whole in one go, its nodes, its settings and its first leaders, so nobody ever sees half of
it. Pure.
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
from ottla.controller.placement import PlacementRandomness
from ottla.controller.state import (
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
    """What a topic asked for has become, or would have."""

    id: TopicId
    partition_count: int
    replication_factor: int


def on_topic_creation_requested(state: ControllerState, event: TopicCreationRequested) -> Step:
    """Create what can be; the answer holds what became of each name, or why it was refused."""
    draft = Draft(state)
    answer: dict[str, Created | KafkaError] = {}
    budget = _budget(state, event)
    spelled = {topic_rules.spelled(name): name for name in state.topics}
    for new in event.topics:
        try:
            assignment = _assignment(draft, new, budget, spelled)
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
            spelled[topic_rules.spelled(new.name)] = new.name
    draft.reply(event.ask, answer)
    return draft.step()


def on_partition_creation_requested(
    state: ControllerState, event: PartitionCreationRequested
) -> Step:
    draft = Draft(state)
    answer: dict[str, KafkaError | None] = {}
    budget = _budget(state, event)
    for more in event.topics:
        try:
            added = _added(draft, more, budget)
        except KafkaError as refusal:
            answer[more.name] = refusal
            continue
        budget -= len(added)
        answer[more.name] = None
        if not event.validate_only:
            topic = draft.topics[more.name]
            grown = _grown(topic, added)
            draft.writes.append(store_operations.set_topic(more.name, grown, topic.version))
            draft.put_topic(more.name, replace(grown, version=topic.version + 1))
            bring_online(draft, [TopicPartition(more.name, number) for number in added])
    draft.reply(event.ask, answer)
    return draft.step()


def on_topics_changed(state: ControllerState, event: TopicsReloaded) -> Step:
    """Topics that others wrote come up; topics whose nodes are gone are forgotten."""
    draft = Draft(state)
    gone = state.topics.keys() - event.names
    for name in sorted(gone):
        for ask in state.deletions[name].asks if name in state.deletions else ():
            draft.reply(ask, ErrorCode.none)
        draft.drop_topic(name)
    if gone & state.deletions.keys():
        left = {name: going for name, going in state.deletions.items() if name not in gone}
        draft.state = replace(draft.state, deletions=left)
    for name in sorted(event.new.keys() - state.topics.keys()):
        draft.put_topic(name, event.new[name])
        topic_from_store(draft, name, event.ids.get(name))
        bring_online(draft, [TopicPartition(name, number) for number in event.new[name].partitions])
    return draft.step()


def on_partitions_changed(state: ControllerState, event: PartitionsReloaded) -> Step:
    """Somebody added partitions to a topic's node. To a topic being deleted nothing is added."""
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
    draft.put_topic(event.name, replace(_grown(topic, added), version=event.topic.version))
    bring_online(draft, [TopicPartition(event.name, number) for number in added])
    return draft.step()


def on_unclean_election_enabled(state: ControllerState, event: UncleanElectionEnabled) -> Step:
    """A topic may now elect outside its ISR: those of its partitions that wait try again."""
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
    waiting = [
        TopicPartition(name, number)
        for name in names
        if name in draft.topics and name not in draft.state.deletions
        for number, partition in draft.topics[name].partitions.items()
        if partition.state is PartitionState.OFFLINE
    ]
    partitions.bring_online(draft, waiting, partitions.offline)


def topic_from_store(draft: Draft, name: str, id: TopicId | None) -> None:
    """Complete what others wrote: the parent of the states, and an id where there is none."""
    draft.writes.append(store_operations.create_partitions_node(name))
    topic = draft.topics[name]
    if id is not None and topic.id == NO_TOPIC_ID:
        named = replace(topic, id=id)
        draft.writes.append(store_operations.set_topic(name, named, topic.version))
        draft.put_topic(name, replace(named, version=topic.version + 1))


def bring_online(draft: Draft, tps: Iterable[TopicPartition]) -> None:
    """New partitions get replicas, a first leader, and are told to everybody."""
    tps = list(tps)
    partitions.move(draft, tps, PartitionState.NEW)
    replicas.move(draft, replicas.of(draft, tps), ReplicaState.NEW)
    partitions.bring_online(draft, tps, partitions.offline)
    there = [r for r in replicas.of(draft, tps) if r.broker in draft.state.brokers]
    replicas.move(draft, there, ReplicaState.ONLINE)


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
    draft: Draft, new: NewTopic, budget: int, spelled: Mapping[str, str]
) -> Mapping[int, Replicas]:
    topic_rules.check_name(new.name)
    if new.name in draft.topics:
        raise KafkaError(ErrorCode.topic_already_exists, f"Topic '{new.name}' already exists.")
    topic_rules.check_collision(new.name, spelled)
    if new.assignment:
        if (new.partition_count, new.replication_factor) != (-1, -1):
            raise KafkaError(
                ErrorCode.invalid_request,
                "A manual partition assignment was specified, but the number of partitions "
                "or the replication factor was not set to -1.",
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
    return placement.place(draft.state.brokers, range(count), factor, new.roll)


def _added(draft: Draft, more: MorePartitions, budget: int) -> Mapping[int, Replicas]:
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
        roll = _continuing(topic.partitions[0].replicas[0], draft.state.brokers)
        return placement.place(draft.state.brokers, range(now, more.total), factor, roll)
    if len(more.assignment) != more.total - now:
        raise KafkaError(
            ErrorCode.invalid_replica_assignment,
            f"Attempted to add {more.total - now} additional partition(s), but only "
            f"{len(more.assignment)} assignment(s) were specified.",
        )
    for chosen in more.assignment:
        topic_rules.check_replicas(chosen, draft.state.brokers.keys(), factor)
    return dict(enumerate(more.assignment, start=now))


def _continuing(first: BrokerId, brokers: Iterable[BrokerId]) -> PlacementRandomness:
    """Go on round the brokers as if the topic had been this large from the start."""
    start = sum(broker < first for broker in brokers)
    return PlacementRandomness(start, start)


def _grown(topic: TopicAssignment, added: Mapping[int, Replicas]) -> TopicAssignment:
    fresh = {number: PartitionAssignment(replicas) for number, replicas in added.items()}
    return replace(topic, partitions={**topic.partitions, **fresh})


def _budget(
    state: ControllerState, event: TopicCreationRequested | PartitionCreationRequested
) -> int:
    most = state.rules.partitions_per_request_max
    return most if event.budget is None else event.budget


def _check_budget(count: int, budget: int) -> None:
    if count > budget:
        raise KafkaError(
            ErrorCode.policy_violation,
            "Unable to perform excessively large batch operation: too many partitions in one "
            "request.",
        )
