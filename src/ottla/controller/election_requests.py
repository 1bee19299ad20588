"""Elections that somebody asks for: an operator, a node in the store, or the balance task.

Owns which partitions need one and what each asker hears. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.controller import partitions, store_operations
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import BalanceDue, ElectionKind, ElectionRequested
from ottla.controller.state import ControllerState, PartitionAssignment
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER, BrokerId, TopicPartition


def on_election_requested(state: ControllerState, event: ElectionRequested) -> Step:
    """The answer has a code for each partition; the store's node just goes when it is done."""
    draft = Draft(state)
    named = event.partitions
    asked_for = [tp for tp, _ in state.partitions()] if named is None else list(named)
    codes: dict[TopicPartition, ErrorCode] = {}
    needed = []
    for tp in asked_for:
        code = _why_not(state, tp, event.kind)
        if code is None:
            needed.append(tp)
        elif named is not None or code is not ErrorCode.election_not_needed:
            codes[tp] = code
    strategy = partitions.preferred if event.kind is ElectionKind.PREFERRED else partitions.unclean
    failures = partitions.bring_online(draft, needed, strategy)
    codes.update((tp, failures.get(tp, ErrorCode.none)) for tp in needed)
    if event.ask is None:
        draft.writes.append(store_operations.delete_preferred_election())
    else:
        draft.reply(event.ask, codes)
    return draft.step()


def on_balance_due(state: ControllerState, _: BalanceDue) -> Step:
    """Give brokers their leaders back where too many of them ended up elsewhere."""
    by_preferred: dict[BrokerId, list[TopicPartition]] = {}
    for tp, partition in state.partitions():
        if tp.topic not in state.deletions and partition.leadership is not None:
            by_preferred.setdefault(partition.replicas[0], []).append(tp)
    draft = Draft(state)
    for broker, tps in sorted(by_preferred.items()):
        away = [tp for tp in tps if draft.partition(tp).leader != broker]
        limit = state.rules.leader_imbalance_per_broker_percentage
        if broker in state.live and len(away) * 100 > limit * len(tps):
            partitions.bring_online(draft, _movable(draft, away), partitions.preferred)
    return draft.step()


def imbalance(state: ControllerState) -> int:
    """Partitions that are not led by their preferred replica."""
    return sum(
        partition.leader != partition.replicas[0]
        for tp, partition in state.partitions()
        if tp.topic not in state.deletions
    )


def _movable(draft: Draft, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Not while a reassignment runs, and only where the preferred replica could lead."""
    return [
        tp
        for tp in tps
        if not draft.partition(tp).is_moving and partitions.preferred(draft, tp) is not None
    ]


def _why_not(state: ControllerState, tp: TopicPartition, kind: ElectionKind) -> ErrorCode | None:
    topic = state.topics.get(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    if partition is None or tp.topic in state.deletions:
        return ErrorCode.unknown_topic_or_partition
    if kind is ElectionKind.PREFERRED:
        in_place = partition.leader == partition.replicas[0]
    else:
        in_place = _has_live_leader(state, partition)
    return ErrorCode.election_not_needed if in_place else None


def _has_live_leader(state: ControllerState, partition: PartitionAssignment) -> bool:
    return partition.leader != NO_BROKER and partition.leader in state.live
