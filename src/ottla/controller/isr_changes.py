"""ISR changes that leaders wrote, and states of ours that met another version.

Owns how what was read replaces what was believed. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ottla.controller import reassignment, store_operations
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import StatesChanged, StatesReloaded
from ottla.controller.state import ControllerState, Leadership
from ottla.model.ids import TopicPartition


def on_states_changed(state: ControllerState, event: StatesChanged) -> Step:
    """Leaders changed their ISR: everybody's metadata follows; a waiting move may now end."""
    draft = Draft(state)
    draft.writes += store_operations.delete_all(event.notifications)
    draft.tell.metadata(state.brokers, _believe(draft, event.states))
    reassignment.resume_reassignments(draft)
    return draft.step()


def on_states_reloaded(state: ControllerState, event: StatesReloaded) -> Step:
    """Tell the replicas too: a write may have happened although we never heard so."""
    draft = Draft(state)
    changed = _believe(draft, event.states)
    draft.tell.metadata(state.brokers, changed)
    for tp in changed:
        online = [b for b in draft.partition(tp).replicas if state.is_online(b, tp)]
        draft.tell.leader_and_isr(online, tp)
    return draft.step()


def _believe(draft: Draft, states: Mapping[TopicPartition, Leadership]) -> list[TopicPartition]:
    changed = []
    for tp, leadership in states.items():
        topic = draft.topics.get(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        if partition is not None and partition.leadership != leadership:
            draft.put(tp, replace(partition, leadership=leadership))
            changed.append(tp)
    return changed
