"""The table of contents of the controller: one line per thing that can happen.

Pure: state and event in, next state and effects out. Each concern has its own file.
"""

from __future__ import annotations

from typing import assert_never

from ottla.controller import (
    brokers,
    deletion,
    election_requests,
    isr_changes,
    reassignment,
    shutdown,
    startup,
    topics,
)
from ottla.controller.effects import Step
from ottla.controller.events import (
    BalanceDue,
    BrokerBehind,
    BrokersSeen,
    DeletionAsked,
    DeletionsSeen,
    Elected,
    ElectionAsked,
    Event,
    LeaderAndIsrAnswered,
    LogDirsSeen,
    MovesAsked,
    PartitionsAsked,
    PartitionsSeen,
    RulesSeen,
    ShutdownAsked,
    StatesReread,
    StatesSeen,
    StopReplicaAnswered,
    TopicsAsked,
    TopicsSeen,
    UncleanSeen,
)
from ottla.controller.state import ControllerState


def on_event(state: ControllerState, event: Event) -> Step:  # noqa: C901 - one line per event
    match event:
        case Elected():
            return startup.elected(state, event)
        case BrokersSeen():
            return brokers.seen(state, event)
        case BrokerBehind():
            return brokers.behind(state, event)
        case LogDirsSeen():
            return brokers.log_dirs_seen(state, event)
        case LeaderAndIsrAnswered():
            return brokers.answered(state, event)
        case TopicsAsked():
            return topics.asked(state, event)
        case TopicsSeen():
            return topics.seen(state, event)
        case PartitionsAsked():
            return topics.more_asked(state, event)
        case PartitionsSeen():
            return topics.partitions_seen(state, event)
        case UncleanSeen():
            return topics.unclean_seen(state, event)
        case RulesSeen():
            return topics.rules_seen(state, event)
        case DeletionAsked():
            return deletion.asked(state, event)
        case DeletionsSeen():
            return deletion.seen(state, event)
        case StopReplicaAnswered():
            return deletion.answered(state, event)
        case StatesSeen():
            return isr_changes.seen(state, event)
        case StatesReread():
            return isr_changes.reread(state, event)
        case ElectionAsked():
            return election_requests.asked(state, event)
        case BalanceDue():
            return election_requests.balance(state, event)
        case ShutdownAsked():
            return shutdown.asked(state, event)
        case MovesAsked():
            return reassignment.asked(state, event)
        case _:
            assert_never(event)
