"""The partition state machine: new, online, offline, non-existent.

Owns the effects of each transition. Never chooses a leader itself: `election.py` does. An illegal
transition is logged and skipped, so that one inconsistent partition cannot stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from ottla.controller import election
from ottla.controller.draft import Draft
from ottla.controller.election import Choice
from ottla.controller.state import PARTITION_MOVES, Leadership, PartitionAssignment, PartitionState
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition

Strategy: TypeAlias = Callable[[Draft, TopicPartition], Choice | None]
Failures: TypeAlias = dict[TopicPartition, ErrorCode]


def offline_election(draft: Draft, tp: TopicPartition) -> Choice | None:
    partition = draft.partition(tp)
    return election.when_offline(
        partition.replicas,
        partition.isr,
        draft.live_replicas(tp),
        unclean_allowed=draft.state.allows_unclean(tp.topic),
    )


def unclean_election(draft: Draft, tp: TopicPartition) -> Choice | None:
    """As `offline_election`, unclean by an operator's request instead of the topic's setting."""
    partition = draft.partition(tp)
    return election.when_offline(
        partition.replicas, partition.isr, draft.live_replicas(tp), unclean_allowed=True
    )


def preferred_election(draft: Draft, tp: TopicPartition) -> Choice | None:
    partition = draft.partition(tp)
    return election.when_preferred(partition.replicas, partition.isr, draft.live_replicas(tp))


def reassigned_election(draft: Draft, tp: TopicPartition) -> Choice | None:
    partition = draft.partition(tp)
    return election.when_reassigned(partition.target, partition.isr, draft.live_replicas(tp))


def shutdown_election(draft: Draft, tp: TopicPartition) -> Choice | None:
    partition = draft.partition(tp)
    return election.when_shutting_down(
        partition.replicas, partition.isr, draft.live_replicas(tp), draft.state.shutting_down
    )


def move(draft: Draft, tps: Iterable[TopicPartition], to: PartitionState) -> None:
    """To any state but online, which needs a leader: see `bring_online`."""
    for tp in tps:
        if _check_transition(draft, tp, to):
            draft.put(tp, replace(draft.partition(tp), state=to))


def bring_online(draft: Draft, tps: Iterable[TopicPartition], strategy: Strategy) -> Failures:
    """Elect a leader for each; returns those without one, which keep their state."""
    failures: Failures = {}
    for tp in tps:
        if not _check_transition(draft, tp, PartitionState.ONLINE):
            failures[tp] = ErrorCode.unknown_topic_or_partition
            continue
        partition = draft.partition(tp)
        if partition.leadership is None:
            failed = _initialise(draft, tp, partition)
        else:
            failed = _elect(draft, tp, partition.leadership, strategy)
        if failed is not None:
            failures[tp] = failed
    return failures


def bump_epoch(draft: Draft, tp: TopicPartition, recipients: Iterable[BrokerId]) -> None:
    """Keep the leader under a new epoch, which invalidates what was sent before."""
    leadership = draft.partition(tp).leadership
    assert leadership is not None, f"partition {tp} has no leader to keep"
    draft.lead(
        tp,
        replace(
            leadership,
            leader_epoch=LeaderEpoch(leadership.leader_epoch + 1),
            controller_epoch=draft.state.epoch,
        ),
    )
    draft.requests.leader_and_isr(recipients, tp)
    draft.requests.metadata(draft.state.brokers, (tp,))


def _check_transition(draft: Draft, tp: TopicPartition, to: PartitionState) -> bool:
    now = draft.partition(tp).state
    legal = to in PARTITION_MOVES[now]
    if not legal:
        draft.warn(f"ignored illegal state change of partition {tp} from {now.value} to {to.value}")
    return legal


def _initialise(
    draft: Draft, tp: TopicPartition, partition: PartitionAssignment
) -> ErrorCode | None:
    """The first leader is the first live replica; all live replicas are in sync, epoch 0."""
    live = draft.live_replicas(tp)
    isr = tuple(broker for broker in partition.replicas if broker in live)
    if not isr:
        draft.warn(
            f"cannot elect a leader for partition {tp}: no live replica among "
            f"{list(partition.replicas)}"
        )
        return ErrorCode.leader_not_available
    draft.lead(tp, Leadership(isr[0], isr, LeaderEpoch(0), draft.state.epoch, 0))
    _set_online(draft, tp, isr, is_new=True)
    return None


def _elect(
    draft: Draft, tp: TopicPartition, now: Leadership, strategy: Strategy
) -> ErrorCode | None:
    if now.controller_epoch > draft.state.epoch:
        draft.warn(
            f"cannot elect a leader for partition {tp}: its state has controller epoch "
            f"{now.controller_epoch}, newer than {draft.state.epoch}"
        )
        return ErrorCode.stale_controller_epoch
    choice = strategy(draft, tp)
    if choice is None:
        return (
            ErrorCode.preferred_leader_not_available
            if strategy is preferred_election
            else ErrorCode.eligible_leaders_not_available
        )
    if choice.unclean:
        draft.warn(
            f"unclean leader election: partition {tp} is led by broker {choice.leader}, which is "
            f"not in the ISR {list(now.isr)}; records may be lost"
        )
        draft.state = replace(draft.state, unclean_elections=draft.state.unclean_elections + 1)
    epoch = LeaderEpoch(now.leader_epoch + 1)
    draft.lead(tp, Leadership(choice.leader, choice.isr, epoch, draft.state.epoch, 0))
    # A replica that failed and is not counted on gets it too: a corrupt log can be refilled now.
    recipients = [
        broker
        for broker in draft.partition(tp).replicas
        if draft.state.is_online(broker, tp)
        or (broker in draft.state.brokers and broker not in choice.isr)
    ]
    _set_online(draft, tp, recipients, is_new=False)
    return None


def _set_online(
    draft: Draft, tp: TopicPartition, recipients: Iterable[BrokerId], *, is_new: bool
) -> None:
    draft.put(tp, replace(draft.partition(tp), state=PartitionState.ONLINE))
    draft.requests.leader_and_isr(recipients, tp, is_new=is_new)
    draft.requests.metadata(draft.state.brokers, (tp,))
