"""Brokers that join, leave, restart or change their listeners; failed log directories.

Owns the effect of each on partitions and replicas. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ottla.controller import (
    deletion,
    lost_disks,
    partitions,
    reassignment,
    replicas,
    store_operations,
)
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
    PartitionState,
    ReplicaState,
)
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition


def on_shutdown_requested(state: ControllerState, event: ShutdownRequested) -> Step:
    """Controlled shutdown: the reply has the partitions whose leader could not be moved.

    The epoch -1 is that of a broker that does not name one: versions 0 and 1 cannot.
    """
    draft = Draft(state)
    broker = state.brokers.get(event.broker)
    if broker is None or -1 < event.epoch < broker.epoch:
        code = ErrorCode.broker_not_available if broker is None else ErrorCode.stale_broker_epoch
        draft.reply(event.request_id, KafkaError(code))
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
    failures = partitions.bring_online(draft, led, partitions.shutdown_election)
    replicas.move(draft, followed, ReplicaState.OFFLINE)
    draft.reply(event.request_id, frozenset(failures))
    return draft.step()


def on_live_brokers_changed(state: ControllerState, event: LiveBrokersChanged) -> Step:
    """Compare the registered brokers with the previous ones: new, dead, restarted, changed."""
    previous, registered = state.brokers, event.brokers
    dead = {id for id in previous if id not in registered}
    staying = previous.keys() & registered.keys()
    restarted = {id for id in staying if registered[id].epoch > previous[id].epoch}
    restarted |= staying & event.lost_disks.keys()
    new = {id for id in registered if id not in previous}
    changed = {id for id in staying - restarted if registered[id] != previous[id]}
    if not dead | restarted | new | changed:
        return Step(state)
    draft = Draft(state)
    if dead | restarted:
        _on_left(draft, dead | restarted)
    lost_disks.leave_isrs(draft, event.lost_disks)
    if new | restarted | changed:  # changed listeners mean a new connection: send everything again
        _on_joined(draft, {id: registered[id] for id in new | restarted | changed})
    draft.requests.metadata(draft.state.brokers, ())
    return draft.step()


def on_broker_behind(state: ControllerState, event: BrokerBehind) -> Step:
    """Its request queue was dropped: send it everything again."""
    draft = Draft(state)
    if event.broker in state.brokers:
        deletion.on_replicas_lost(draft, _replicas_on(draft, {event.broker}))
        _on_joined(draft, {event.broker: state.brokers[event.broker]})
    return draft.step()


def on_log_dirs_failed(state: ControllerState, event: LogDirFailuresFound) -> Step:
    """Send these brokers all their replicas: the replies tell which ones are offline, and which
    are available again. A deletion that one of them could not perform is tried again."""
    draft = Draft(state)
    draft.writes += store_operations.delete_all(event.notifications)
    for tp, broker in _replicas_on(draft, event.brokers & state.brokers.keys()):
        if draft.partition(tp).leadership is not None and not _is_deleted(state, tp):
            draft.requests.leader_and_isr((broker,), tp)
    deletion.retry_deletions(draft)
    return draft.step()


def on_leader_and_isr_reply(state: ControllerState, event: LeaderAndIsrReplied) -> Step:
    """Replicas with a storage error go offline; those that succeed again come back online."""
    broker = state.brokers.get(event.broker)
    if broker is None or broker.epoch != event.epoch:
        return Step(state)
    failed_before = state.failed_directories.get(event.broker, frozenset())
    hosted = {tp for tp in event.codes if _has_replica(state, event.broker, tp)}
    lost = {
        tp
        for tp in hosted
        if event.codes[tp] is ErrorCode.kafka_storage_error and not _is_deleted(state, tp)
    }
    recovered = {tp for tp in hosted & failed_before if event.codes[tp] is ErrorCode.none}
    failed = (failed_before | lost) - recovered
    if failed == failed_before:
        return Step(state)
    draft = Draft(state)
    draft.state = replace(
        state, failed_directories={**state.failed_directories, event.broker: failed}
    )
    _take_offline(draft, [Replica(tp, event.broker) for tp in lost - failed_before])
    _let_follow(draft, event.broker, lost - failed_before)
    replicas.move(draft, [Replica(tp, event.broker) for tp in recovered], ReplicaState.ONLINE)
    _elect_where_possible(draft)
    return draft.step()


def _is_deleted(state: ControllerState, tp: TopicPartition) -> bool:
    """Whether a StopReplica follows, whose reply says whether the replica can be deleted.

    A replica that was to lead or follow, and has no log, has nothing that would hold it up.
    """
    deletion = state.deletions.get(tp.topic)
    return deletion is not None and deletion.started


def _let_follow(draft: Draft, broker: BrokerId, lost: Iterable[TopicPartition]) -> None:
    """Try once more now that they are out of the in-sync sets.

    A replica that was listed in sync and has no log, because its broker died before it made one,
    may begin with an empty log as a follower. One on a failed disk replies with the error again.
    """
    for tp in sorted(lost):
        leadership = draft.partition(tp).leadership
        if leadership is not None and leadership.leader >= 0 and broker not in leadership.isr:
            draft.requests.follow_instead(broker, tp)


def start_replicas(draft: Draft, brokers: Iterable[BrokerId]) -> None:
    """Put every replica of live brokers online, in one LeaderAndIsr that names them all."""
    ids = frozenset(brokers)
    draft.requests.mark_full(ids)
    existing = [
        replica
        for replica in _replicas_on(draft, ids)
        if replica.tp.topic not in draft.state.deletions
        and replica.broker in draft.partition(replica.tp).replica_states
    ]
    replicas.move(draft, existing, ReplicaState.ONLINE)


def _on_joined(draft: Draft, joined: Mapping[BrokerId, BrokerState]) -> None:
    state = draft.state
    draft.state = replace(
        state,
        brokers={**state.brokers, **joined},
        shutting_down=state.shutting_down - joined.keys(),
        failed_directories={
            id: tps for id, tps in state.failed_directories.items() if id not in joined
        },
    )
    draft.requests.send_live_brokers_first(joined)
    staying = [
        TopicPartition(name, number)
        for name, topic in draft.topics.items()
        if name not in state.deletions
        for number in topic.partitions
    ]
    draft.requests.full_metadata(joined, staying)
    start_replicas(draft, joined)
    _elect_where_possible(draft)
    reassignment.resume_reassignments(draft)
    deletion.retry_deletions(draft)


def _on_left(draft: Draft, left: set[BrokerId]) -> None:
    state = draft.state
    lost = _replicas_on(draft, left)
    draft.state = replace(
        state,
        brokers={id: broker for id, broker in state.brokers.items() if id not in left},
        shutting_down=state.shutting_down - left,
        failed_directories={
            id: tps for id, tps in state.failed_directories.items() if id not in left
        },
    )
    _take_offline(draft, lost)


def _take_offline(draft: Draft, lost: list[Replica]) -> None:
    """Elect other leaders for the partitions they led, then remove them from the ISRs."""
    deletion.on_replicas_lost(draft, lost)
    staying = [replica for replica in lost if replica.tp.topic not in draft.state.deletions]
    leaderless = [tp for tp, broker in staying if draft.partition(tp).leader == broker]
    partitions.move(draft, leaderless, PartitionState.OFFLINE)
    _elect_where_possible(draft)
    replicas.move(draft, staying, ReplicaState.OFFLINE)


def _elect_where_possible(draft: Draft) -> None:
    """Try to elect a leader for every partition without one."""
    leaderless = [
        TopicPartition(name, number)
        for name, topic in draft.topics.items()
        if name not in draft.state.deletions
        for number, partition in topic.partitions.items()
        if partition.state in (PartitionState.NEW, PartitionState.OFFLINE)
    ]
    partitions.bring_online(draft, leaderless, partitions.offline_election)


def _replicas_on(draft: Draft, brokers: Iterable[BrokerId]) -> list[Replica]:
    ids = frozenset(brokers)
    return [
        Replica(TopicPartition(name, number), broker)
        for name, topic in draft.topics.items()
        for number, partition in topic.partitions.items()
        for broker in partition.replicas
        if broker in ids
    ]


def _has_replica(state: ControllerState, broker: BrokerId, tp: TopicPartition) -> bool:
    """False if the replica was reassigned while the reply was on its way."""
    topic = state.topics.get(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    return partition is not None and broker in partition.replica_states
