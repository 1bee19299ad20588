"""How many partitions an event concerns: whether deciding it may keep the event loop for long.

Owns an estimate, from above. Pure.
"""

from __future__ import annotations

from ottla.controller.events import (
    DeletionRequested,
    ElectionRequested,
    Event,
    LeaderAndIsrReplied,
    PartitionCreationRequested,
    ReassignmentRequested,
    StatesChanged,
    StatesReloaded,
    StopReplicaReplied,
    TopicCreationRequested,
    UncleanElectionEnabled,
)
from ottla.controller.state import ControllerState


def weight(state: ControllerState, event: Event) -> int:
    match event:
        case TopicCreationRequested():
            default = state.rules.num_partitions
            return sum(
                len(new.assignment) or (default if new.partition_count < 0 else new.partition_count)
                for new in event.topics
            )
        case PartitionCreationRequested():
            return sum(more.total for more in event.topics)
        case DeletionRequested():
            return sum(_size(state, name) for name in event.asks)
        case StopReplicaReplied() | LeaderAndIsrReplied():
            return len(event.codes)
        case StatesChanged() | StatesReloaded():
            return len(event.states)
        case ReassignmentRequested():
            return len(event.moves)
        case UncleanElectionEnabled():
            return _size(state, event.topic)
        case ElectionRequested() if event.partitions is not None:
            return len(event.partitions)
        case _:  # what may concern them all
            return sum(len(topic.partitions) for topic in state.topics.values())


def _size(state: ControllerState, name: str) -> int:
    topic = state.topics.get(name)
    return 0 if topic is None else len(topic.partitions)
