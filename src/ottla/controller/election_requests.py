"""Elections requested by an operator, by a node in the store, or by leader balancing.

Owns which partitions need an election and the reply for each. Pure.
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
    """The reply has a code for each partition; a request from the store only loses its node."""
    draft = Draft(state)
    named = event.partitions
    requested = [tp for tp, _ in state.partitions()] if named is None else list(named)
    codes: dict[TopicPartition, ErrorCode] = {}
    needed = []
    for tp in requested:
        code = _refusal(state, tp, event.kind)
        if code is None:
            needed.append(tp)
        elif named is not None or code is not ErrorCode.election_not_needed:
            codes[tp] = code
    strategy = (
        partitions.preferred_election
        if event.kind is ElectionKind.PREFERRED
        else partitions.unclean_election
    )
    failures = partitions.bring_online(draft, needed, strategy)
    codes.update((tp, failures.get(tp, ErrorCode.none)) for tp in needed)
    if event.request_id is None:
        draft.writes.append(store_operations.delete_preferred_election())
    else:
        draft.reply(event.request_id, codes)
    return draft.step()


def on_balance_due(state: ControllerState, _: BalanceDue) -> Step:
    """Elect preferred leaders for brokers that have lost too many of theirs."""
    by_preferred: dict[BrokerId, list[TopicPartition]] = {}
    for tp, partition in state.partitions():
        if tp.topic not in state.deletions and partition.leadership is not None:
            by_preferred.setdefault(partition.replicas[0], []).append(tp)
    draft = Draft(state)
    for broker, tps in sorted(by_preferred.items()):
        away = [tp for tp in tps if draft.partition(tp).leader != broker]
        limit = state.rules.leader_imbalance_per_broker_percentage
        if broker in state.live and len(away) * 100 > limit * len(tps):
            partitions.bring_online(draft, _movable(draft, away), partitions.preferred_election)
    return draft.step()


def imbalance(state: ControllerState) -> int:
    """Partitions that are not led by their preferred replica."""
    return sum(
        partition.leader != partition.replicas[0]
        for tp, partition in state.partitions()
        if tp.topic not in state.deletions
    )


def _movable(draft: Draft, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions without a running reassignment whose preferred replica can lead."""
    return [
        tp
        for tp in tps
        if not draft.partition(tp).is_moving
        and partitions.preferred_election(draft, tp) is not None
    ]


def _refusal(state: ControllerState, tp: TopicPartition, kind: ElectionKind) -> ErrorCode | None:
    topic = state.topics.get(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    if partition is None or tp.topic in state.deletions:
        return ErrorCode.unknown_topic_or_partition
    if kind is ElectionKind.PREFERRED:
        has_leader = partition.leader == partition.replicas[0]
    else:
        has_leader = _has_live_leader(state, partition)
    return ErrorCode.election_not_needed if has_leader else None


def _has_live_leader(state: ControllerState, partition: PartitionAssignment) -> bool:
    return partition.leader != NO_BROKER and partition.leader in state.live
