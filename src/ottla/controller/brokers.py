"""Brokers that come, go, come back, or change their address; and their log directories.

Owns what each of these does to partitions. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ottla.controller import deletion, partitions, reassignment, replicas, store_operations
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import (
    BrokerBehind,
    LeaderAndIsrReplied,
    LiveBrokersChanged,
    LogDirFailuresFound,
    ShutdownRequested,
)
from ottla.controller.replicas import Replica
from ottla.controller.state import (
    BrokerState,
    ControllerState,
    PartitionAssignment,
    PartitionState,
    ReplicaState,
)
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition


def on_shutdown_requested(state: ControllerState, event: ShutdownRequested) -> Step:
    """The answer is the set of partitions it still leads though others hold copies."""
    draft = Draft(state)
    broker = state.brokers.get(event.broker)
    if broker is None or event.epoch < broker.epoch:
        code = ErrorCode.broker_not_available if broker is None else ErrorCode.stale_broker_epoch
        draft.reply(event.ask, KafkaError(code))
        return draft.step()
    draft.state = replace(state, shutting_down=state.shutting_down | {event.broker})
    shared = [
        tp
        for tp, partition in state.partitions()
        if event.broker in partition.replicas
        and len(partition.replicas) > 1
        and partition.leadership is not None
        and tp.topic not in state.deletions
    ]
    led = [tp for tp in shared if draft.partition(tp).leader == event.broker]
    followed = [
        Replica(tp, event.broker) for tp in shared if draft.partition(tp).leader != event.broker
    ]
    failures = partitions.bring_online(draft, led, partitions.leaving)
    replicas.move(draft, followed, ReplicaState.OFFLINE)
    draft.reply(event.ask, frozenset(failures))
    return draft.step()


def on_live_brokers_changed(state: ControllerState, event: LiveBrokersChanged) -> Step:
    """Compare who is registered with who we knew: new, dead, restarted, readdressed."""
    known, there = state.brokers, event.brokers
    dead = {id for id in known if id not in there}
    bounced = {id for id in known if id in there and there[id].epoch > known[id].epoch}
    new = {id for id in there if id not in known}
    readdressed = {
        id for id in known if id in there and id not in bounced and there[id] != known[id]
    }
    if not dead | bounced | new | readdressed:
        return Step(state)
    draft = Draft(state)
    if dead | bounced:
        _on_left(draft, dead | bounced)
    if new | bounced | readdressed:  # another address is another connection: tell it all again
        _on_joined(draft, {id: there[id] for id in new | bounced | readdressed})
    draft.tell.metadata(draft.state.brokers, ())
    return draft.step()


def on_broker_behind(state: ControllerState, event: BrokerBehind) -> Step:
    """Its queue was dropped: to it, everything is news again."""
    draft = Draft(state)
    if event.broker in state.brokers:
        deletion.on_replicas_lost(draft, _on(draft, {event.broker}))
        _on_joined(draft, {event.broker: state.brokers[event.broker]})
    return draft.step()


def on_log_dirs_failed(state: ControllerState, event: LogDirFailuresFound) -> Step:
    """Ask these brokers for all their replicas: each says which of them it lost."""
    draft = Draft(state)
    draft.writes += store_operations.delete_all(event.notifications)
    for tp, broker in _on(draft, event.brokers & state.brokers.keys()):
        if draft.partition(tp).leadership is not None:
            draft.tell.leader_and_isr((broker,), tp)
    return draft.step()


def on_leader_and_isr_reply(state: ControllerState, event: LeaderAndIsrReplied) -> Step:
    """What a broker said of its replicas: storage errors put them offline, success back online."""
    broker = state.brokers.get(event.broker)
    if broker is None or broker.epoch != event.epoch:
        return Step(state)
    was = state.failed_directories.get(event.broker, frozenset())
    known = {tp for tp in event.codes if _holds(state, event.broker, tp)}
    lost = {tp for tp in known if event.codes[tp] is ErrorCode.kafka_storage_error}
    back = {tp for tp in known & was if event.codes[tp] is ErrorCode.none}
    failed = (was | lost) - back
    if failed == was:
        return Step(state)
    draft = Draft(state)
    draft.state = replace(
        state, failed_directories={**state.failed_directories, event.broker: failed}
    )
    _offline(draft, [Replica(tp, event.broker) for tp in lost - was])
    replicas.move(draft, [Replica(tp, event.broker) for tp in back], ReplicaState.ONLINE)
    _elect_where_possible(draft)
    return draft.step()


def start_replicas(draft: Draft, brokers: Iterable[BrokerId]) -> None:
    """Put every replica of live brokers online, in one LeaderAndIsr that names them all."""
    ids = frozenset(brokers)
    draft.tell.in_full(ids)
    born = [
        replica
        for replica in _on(draft, ids)
        if replica.tp.topic not in draft.state.deletions
        and replica.broker in draft.partition(replica.tp).replica_states
    ]
    replicas.move(draft, born, ReplicaState.ONLINE)


def _on_joined(draft: Draft, came: Mapping[BrokerId, BrokerState]) -> None:
    state = draft.state
    draft.state = replace(
        state,
        brokers={**state.brokers, **came},
        shutting_down=state.shutting_down - came.keys(),
        failed_directories={
            id: tps for id, tps in state.failed_directories.items() if id not in came
        },
    )
    draft.tell.introduce(came)
    staying = [
        TopicPartition(name, number)
        for name, topic in draft.topics.items()
        if name not in state.deletions
        for number in topic.partitions
    ]
    draft.tell.metadata(came, staying)
    start_replicas(draft, came)
    _elect_where_possible(draft)
    reassignment.resume_reassignments(draft)
    deletion.retry_deletions(draft)


def _on_left(draft: Draft, gone: set[BrokerId]) -> None:
    state = draft.state
    lost = _on(draft, gone)
    draft.state = replace(
        state,
        brokers={id: broker for id, broker in state.brokers.items() if id not in gone},
        shutting_down=state.shutting_down - gone,
        failed_directories={
            id: tps for id, tps in state.failed_directories.items() if id not in gone
        },
    )
    _offline(draft, lost)


def _offline(draft: Draft, lost: list[Replica]) -> None:
    """Partitions they led look for another leader, then the replicas leave the ISRs."""
    deletion.on_replicas_lost(draft, lost)
    staying = [replica for replica in lost if replica.tp.topic not in draft.state.deletions]
    leaderless = [tp for tp, broker in staying if draft.partition(tp).leader == broker]
    partitions.move(draft, leaderless, PartitionState.OFFLINE)
    _elect_where_possible(draft)
    replicas.move(draft, staying, ReplicaState.OFFLINE)


def _elect_where_possible(draft: Draft) -> None:
    """Every partition without a leader tries again: something has changed."""
    waiting = [
        TopicPartition(name, number)
        for name, topic in draft.topics.items()
        if name not in draft.state.deletions
        for number, partition in topic.partitions.items()
        if partition.state in (PartitionState.NEW, PartitionState.OFFLINE)
    ]
    partitions.bring_online(draft, waiting, partitions.offline)


def _on(draft: Draft, brokers: Iterable[BrokerId]) -> list[Replica]:
    ids = frozenset(brokers)
    return [
        Replica(TopicPartition(name, number), broker)
        for name, topic in draft.topics.items()
        for number, partition in topic.partitions.items()
        for broker in _both(partition, ids)
    ]


def _both(partition: PartitionAssignment, brokers: frozenset[BrokerId]) -> Iterable[BrokerId]:
    return [broker for broker in partition.replicas if broker in brokers]


def _holds(state: ControllerState, broker: BrokerId, tp: TopicPartition) -> bool:
    """Whether it still has a replica of that: its word may be late, and the replica moved away."""
    topic = state.topics.get(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    return partition is not None and broker in partition.replica_states
