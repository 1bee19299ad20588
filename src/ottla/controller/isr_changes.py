"""ISR changes: requested by leaders, written by leaders, or reloaded after a version conflict.

Owns which proposals of a leader are accepted, and how states read from the store replace those in
memory. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ottla.controller import reassignment, store_operations
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import (
    IsrChangeRequested,
    IsrMember,
    IsrProposal,
    StatesChanged,
    StatesReloaded,
)
from ottla.controller.state import ControllerState, Leadership
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicId, TopicPartition

E = ErrorCode


def on_isr_change_requested(state: ControllerState, event: IsrChangeRequested) -> Step:
    """Each proposal is accepted or refused by itself; the reply has all results."""
    draft = Draft(state)
    sender = state.brokers.get(event.broker)
    if sender is None or sender.epoch != event.epoch:
        draft.reply(event.request_id, KafkaError(E.stale_broker_epoch))
        return draft.step()
    wanted = {topic_id for topic_id, _ in event.proposals}
    names = {topic.id: name for name, topic in state.topics.items() if topic.id in wanted}
    results: dict[tuple[TopicId, int], Leadership | ErrorCode] = {}
    changed: list[TopicPartition] = []
    for (topic_id, number), proposal in event.proposals.items():
        name = names.get(topic_id)
        if name is None:
            results[topic_id, number] = E.unknown_topic_id
            continue
        tp = TopicPartition(name, number)
        result = _propose(draft, tp, event.broker, proposal)
        if isinstance(result, Leadership) and result.version != proposal.version:
            changed.append(tp)
        results[topic_id, number] = result
    draft.requests.metadata(state.brokers, changed)
    draft.reply(event.request_id, results, at_once=True)
    reassignment.resume(draft, changed)
    return draft.step()


def _propose(
    draft: Draft, tp: TopicPartition, sender: BrokerId, proposal: IsrProposal
) -> Leadership | ErrorCode:
    """The leadership that holds now, or why the proposal is refused."""
    partition = draft.topics[tp.topic].partitions.get(tp.partition)
    now = None if partition is None else partition.leadership
    deleting = draft.state.deletions.get(tp.topic)  # before it starts, a reassignment may end
    if partition is None or now is None or (deleting is not None and deleting.started):
        return E.unknown_topic_or_partition
    refusal = _check_fenced(now, sender, proposal)
    if refusal is not None:
        return refusal
    isr = tuple(member.broker for member in proposal.isr)
    if set(isr) == set(now.isr):
        return now  # a repeated request whose first reply was lost, too
    if proposal.version != now.version:
        return E.invalid_update_version
    if now.leader not in isr or len(set(isr)) != len(isr):
        return E.invalid_request
    for member in proposal.isr:
        if member.broker not in now.isr and not _is_eligible(draft, tp, member):
            return E.ineligible_replica
    draft.lead(tp, replace(now, isr=isr, controller_epoch=draft.state.epoch))
    accepted = draft.partition(tp).leadership
    assert accepted is not None
    return accepted


def _check_fenced(now: Leadership, sender: BrokerId, proposal: IsrProposal) -> ErrorCode | None:
    """A leader that knows more than this controller has heard from a newer one."""
    if proposal.leader_epoch > now.leader_epoch or proposal.version > now.version:
        return E.not_controller
    if sender != now.leader or proposal.leader_epoch < now.leader_epoch:
        return E.fenced_leader_epoch
    return None


def _is_eligible(draft: Draft, tp: TopicPartition, member: IsrMember) -> bool:
    """A live replica that is not shutting down and has not restarted since it caught up."""
    broker = draft.state.brokers.get(member.broker)
    return (
        broker is not None
        and member.broker in draft.live_replicas(tp)
        and member.epoch in (None, broker.epoch)
    )


def on_states_changed(state: ControllerState, event: StatesChanged) -> Step:
    """Leaders changed their ISR: update all metadata; a reassignment may complete now."""
    draft = Draft(state)
    draft.writes += store_operations.delete_all(event.notifications)
    draft.requests.metadata(state.brokers, _apply_states(draft, event.states))
    reassignment.resume_reassignments(draft)
    return draft.step()


def on_states_reloaded(state: ControllerState, event: StatesReloaded) -> Step:
    """Notify the replicas too: our write may have happened although its reply was lost."""
    draft = Draft(state)
    changed = _apply_states(draft, event.states)
    draft.requests.metadata(state.brokers, changed)
    for tp in changed:
        online = [b for b in draft.partition(tp).replicas if state.is_online(b, tp)]
        draft.requests.leader_and_isr(online, tp)
    return draft.step()


def _apply_states(
    draft: Draft, states: Mapping[TopicPartition, Leadership]
) -> list[TopicPartition]:
    changed = []
    for tp, leadership in states.items():
        topic = draft.topics.get(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        if partition is not None and partition.leadership != leadership:
            draft.put(tp, replace(partition, leadership=leadership))
            changed.append(tp)
    return changed
