"""How many partitions an event concerns: whether deciding it may keep the event loop for long.

Owns an estimate, from above. Pure.
"""

from __future__ import annotations

from ottla.controller.events import (
    DeletionAsked,
    ElectionAsked,
    Event,
    LeaderAndIsrAnswered,
    MovesAsked,
    PartitionsAsked,
    StatesReread,
    StatesSeen,
    StopReplicaAnswered,
    TopicsAsked,
    UncleanSeen,
)
from ottla.controller.state import ControllerState


def weight(state: ControllerState, event: Event) -> int:
    match event:
        case TopicsAsked():
            default = state.rules.num_partitions
            return sum(
                len(new.assignment) or (default if new.partition_count < 0 else new.partition_count)
                for new in event.topics
            )
        case PartitionsAsked():
            return sum(more.total for more in event.topics)
        case DeletionAsked():
            return sum(_size(state, name) for name in event.asks)
        case StopReplicaAnswered() | LeaderAndIsrAnswered():
            return len(event.codes)
        case StatesSeen() | StatesReread():
            return len(event.states)
        case MovesAsked():
            return len(event.moves)
        case UncleanSeen():
            return _size(state, event.topic)
        case ElectionAsked() if event.partitions is not None:
            return len(event.partitions)
        case _:  # what may concern them all
            return sum(len(topic.partitions) for topic in state.topics.values())


def _size(state: ControllerState, name: str) -> int:
    topic = state.topics.get(name)
    return 0 if topic is None else len(topic.partitions)
