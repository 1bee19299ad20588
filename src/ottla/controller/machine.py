"""Maps each event to the function that handles it.

Pure: state and event in, next state and effects out. Each concern has its own module.
"""

from __future__ import annotations

from typing import assert_never

from ottla.controller import (
    brokers,
    deletion,
    election_requests,
    isr_changes,
    reassignment,
    startup,
    topics,
)
from ottla.controller.effects import Step
from ottla.controller.events import (
    BalanceDue,
    BrokerBehind,
    DeletionRequested,
    DeletionsFound,
    Elected,
    ElectionRequested,
    Event,
    IsrChangeRequested,
    LeaderAndIsrReplied,
    LiveBrokersChanged,
    LogDirFailuresFound,
    PartitionCreationRequested,
    PartitionsReloaded,
    ReassignmentRequested,
    RulesChanged,
    ShutdownRequested,
    StatesChanged,
    StatesReloaded,
    StopReplicaReplied,
    TopicCreationRequested,
    TopicsReloaded,
    UncleanElectionEnabled,
)
from ottla.controller.state import ControllerState


def on_event(state: ControllerState, event: Event) -> Step:  # noqa: C901 - one line per event
    match event:
        case Elected():
            return startup.on_elected(state, event)
        case LiveBrokersChanged():
            return brokers.on_live_brokers_changed(state, event)
        case BrokerBehind():
            return brokers.on_broker_behind(state, event)
        case LogDirFailuresFound():
            return brokers.on_log_dirs_failed(state, event)
        case LeaderAndIsrReplied():
            return brokers.on_leader_and_isr_reply(state, event)
        case TopicCreationRequested():
            return topics.on_topic_creation_requested(state, event)
        case TopicsReloaded():
            return topics.on_topics_changed(state, event)
        case PartitionCreationRequested():
            return topics.on_partition_creation_requested(state, event)
        case PartitionsReloaded():
            return topics.on_partitions_changed(state, event)
        case UncleanElectionEnabled():
            return topics.on_unclean_election_enabled(state, event)
        case RulesChanged():
            return topics.on_rules_changed(state, event)
        case DeletionRequested():
            return deletion.on_deletion_requested(state, event)
        case DeletionsFound():
            return deletion.on_deletions_found(state, event)
        case StopReplicaReplied():
            return deletion.on_stop_replica_reply(state, event)
        case StatesChanged():
            return isr_changes.on_states_changed(state, event)
        case StatesReloaded():
            return isr_changes.on_states_reloaded(state, event)
        case IsrChangeRequested():
            return isr_changes.on_isr_change_requested(state, event)
        case ElectionRequested():
            return election_requests.on_election_requested(state, event)
        case BalanceDue():
            return election_requests.on_balance_due(state, event)
        case ShutdownRequested():
            return brokers.on_shutdown_requested(state, event)
        case ReassignmentRequested():
            return reassignment.on_reassignment_requested(state, event)
        case _:
            assert_never(event)
