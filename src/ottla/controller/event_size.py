"""How many partitions an event concerns, which tells whether deciding it may block the event loop.

Owns an upper estimate. Pure.
"""

from __future__ import annotations

from ottla.controller.events import (
    DeletionRequested,
    ElectionRequested,
    Event,
    IsrChangeRequested,
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


def partition_count(state: ControllerState, event: Event) -> int:
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
            return sum(_topic_size(state, name) for name in event.request_ids)
        case StopReplicaReplied() | LeaderAndIsrReplied():
            return len(event.codes)
        case StatesChanged() | StatesReloaded():
            return len(event.states)
        case IsrChangeRequested():
            return len(event.proposals)
        case ReassignmentRequested():
            return len(event.moves)
        case UncleanElectionEnabled():
            return _topic_size(state, event.topic)
        case ElectionRequested() if event.partitions is not None:
            return len(event.partitions)
        case _:  # may concern all partitions
            return sum(len(topic.partitions) for topic in state.topics.values())


def _topic_size(state: ControllerState, name: str) -> int:
    topic = state.topics.get(name)
    return 0 if topic is None else len(topic.partitions)
