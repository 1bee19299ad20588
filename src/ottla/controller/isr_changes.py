"""ISR changes written by leaders, and states reloaded after a version conflict.

Owns how states read from the store replace those in memory. Pure.
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
