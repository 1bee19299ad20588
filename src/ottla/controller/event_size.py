"""How many partitions an event concerns, which tells whether deciding it may block the event loop.

Owns an upper estimate. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.controller.events import (
    DeletionRequested,
    Elected,
    ElectionRequested,
    Event,
    IsrChangeRequested,
    LeaderAndIsrReplied,
    PartitionCreationRequested,
    PartitionsReloaded,
    ReassignmentRequested,
    StatesChanged,
    StatesReloaded,
    StopReplicaReplied,
    TopicCreationRequested,
    TopicsReloaded,
    UncleanElectionEnabled,
)
from ottla.controller.state import ControllerState, TopicAssignment


def partition_count(state: ControllerState, event: Event) -> int:  # noqa: C901 - one case per event
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
        case PartitionsReloaded():
            return len(event.topic.partitions)
        case Elected():  # the state has nothing yet
            return _size(event.topics)
        case TopicsReloaded():
            deleted = state.topics.keys() - event.names
            return _size(event.new) + sum(_topic_size(state, name) for name in deleted)
        case _:  # may concern all partitions
            return _size(state.topics)


def _size(topics: Mapping[str, TopicAssignment]) -> int:
    return sum(len(topic.partitions) for topic in topics.values())


def _topic_size(state: ControllerState, name: str) -> int:
    topic = state.topics.get(name)
    return 0 if topic is None else len(topic.partitions)
