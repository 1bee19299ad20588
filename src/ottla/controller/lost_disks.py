"""Brokers that came back without log directories they had: their disk was wiped or replaced.

Owns what they lose: such a broker leaves every ISR, because its replicas may be empty and must not
be elected; only after that its new directories are remembered. It refills as a follower. A
partition of which it was the last in-sync replica has an empty ISR from then on: it stays offline
until an operator allows an unclean election. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from ottla.controller import election, partitions, store_operations
from ottla.controller.draft import Draft
from ottla.controller.election import Choice
from ottla.controller.state import Leadership, PartitionState
from ottla.model.ids import NO_BROKER, BrokerId, LeaderEpoch, TopicPartition
from ottla.store.nodes import LogDirsNode


def leave_isrs(draft: Draft, lost: Mapping[BrokerId, LogDirsNode]) -> None:
    """The writes keep this order: a step cut short is repeated, because the store still remembers
    the lost directories."""
    if not lost:
        return
    affected = [
        (TopicPartition(name, number), partition.leadership)
        for name, topic in draft.topics.items()
        if name not in draft.state.deletions
        for number, partition in topic.partitions.items()
        if partition.leadership is not None and not lost.keys().isdisjoint(partition.isr)
    ]
    for tp, leadership in affected:
        _leave(draft, tp, leadership, lost)
    leaderless = [tp for tp, leadership in affected if leadership.leader in lost]
    partitions.bring_online(draft, leaderless, partial(_election_without, lost))
    for broker, log_dirs in sorted(lost.items()):
        draft.writes.append(store_operations.set_log_dirs(broker, log_dirs))
        draft.warn(f"broker {broker} lost log directories: it has left every ISR")


def _election_without(
    lost: Collection[BrokerId], draft: Draft, tp: TopicPartition
) -> Choice | None:
    """An unclean election, where it is allowed, prefers replicas that still have their disks."""
    partition = draft.partition(tp)
    return election.when_offline(
        partition.replicas,
        partition.isr,
        draft.live_replicas(tp) - set(lost),
        unclean_allowed=draft.state.allows_unclean(tp.topic),
    )


def _leave(
    draft: Draft, tp: TopicPartition, leadership: Leadership, lost: Collection[BrokerId]
) -> None:
    isr = tuple(member for member in leadership.isr if member not in lost)
    led = leadership.leader not in lost
    draft.lead(
        tp,
        replace(
            leadership,
            leader=leadership.leader if led else NO_BROKER,
            isr=isr,
            leader_epoch=LeaderEpoch(leadership.leader_epoch + 1),
            controller_epoch=draft.state.epoch,
        ),
    )
    if not isr:
        draft.warn(
            f"partition {tp} is offline: its last in-sync replica lost its log directories; an "
            "unclean election makes what other replicas have available"
        )
    if not led and draft.partition(tp).state is PartitionState.ONLINE:
        partitions.move(draft, [tp], PartitionState.OFFLINE)
    partition = draft.partition(tp)
    draft.requests.leader_and_isr(
        [broker for broker in partition.replicas if draft.state.is_online(broker, tp)], tp
    )
    draft.requests.metadata(draft.state.brokers, (tp,))
