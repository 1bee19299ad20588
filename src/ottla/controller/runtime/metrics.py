"""The metrics of a controller: counts, and the time each event took.

Owns the names, and which of Kafka's controller states each event counts for. Counts are computed
from the state when metrics are scraped; only times are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ottla.controller import election_requests, events
from ottla.controller.runtime.event_queue import Item
from ottla.controller.state import ControllerState, ReplicaState
from ottla.model.clock import Clock
from ottla.model.metrics import Registry
from ottla.store import changes
from ottla.store.port import Session

GROUP = "kafka_controller_kafkacontroller"
STATS = "kafka_controller_controllerstats"
CHANNELS = "kafka_controller_controllerchannelmanager"
EVENTS = "kafka_controller_controllereventmanager"

STATES: Final[Mapping[type, str]] = {
    Session: "controller_change",
    changes.ControllerMoved: "controller_change",
    events.Elected: "controller_change",
    changes.BrokersChanged: "leader_election",
    changes.BrokerChanged: "leader_election",
    events.LiveBrokersChanged: "leader_election",
    events.BrokerBehind: "leader_election",
    changes.TopicsChanged: "topic_change",
    changes.PartitionsChanged: "topic_change",
    events.TopicsReloaded: "topic_change",
    events.PartitionsReloaded: "topic_change",
    events.TopicCreationRequested: "topic_change",
    events.PartitionCreationRequested: "topic_change",
    changes.DeletionNodesChanged: "topic_deletion",
    events.DeletionsFound: "topic_deletion",
    events.DeletionRequested: "topic_deletion",
    events.StopReplicaReplied: "topic_deletion",
    changes.IsrsChanged: "isr_change",
    changes.StateChanged: "isr_change",
    events.StatesChanged: "isr_change",
    events.StatesReloaded: "isr_change",
    events.IsrChangeRequested: "isr_change",
    changes.LogDirsFailed: "log_dir_change",
    events.LogDirFailuresFound: "log_dir_change",
    events.LeaderAndIsrReplied: "leader_and_isr_response_received",
    changes.ReassignmentNodeChanged: "partition_reassignment",
    events.ReassignmentRequested: "partition_reassignment",
    changes.PreferredElectionNodeChanged: "manual_leader_balance",
    events.ElectionRequested: "manual_leader_balance",
    events.BalanceDue: "auto_leader_balance",
    events.ShutdownRequested: "controlled_shutdown",
    events.RulesChanged: "unclean_leader_election_enable",
    events.UncleanElectionEnabled: "topic_unclean_leader_election_enable",
    changes.ConfigsChanged: "topic_change",
}
"""Kafka's names of what a controller is doing, by the type of an item of its queue."""
_STATE_DOCS: Final = {
    "auto_leader_balance": "Time spent on balancing leaders.",
    "controlled_shutdown": "Time spent on brokers that stop.",
    "controller_change": "Time spent on elections of the controller and sessions.",
    "isr_change": "Time spent on changes of in-sync sets.",
    "leader_and_isr_response_received": "Time spent on replies to LeaderAndIsr.",
    "leader_election": "Time spent on brokers that join or leave, elections included.",
    "log_dir_change": "Time spent on failed log directories.",
    "manual_leader_balance": "Time spent on requested elections.",
    "partition_reassignment": "Time spent on reassignments.",
    "topic_change": "Time spent on new topics and partitions.",
    "topic_deletion": "Time spent on deletions of topics.",
    "topic_unclean_leader_election_enable": "Time spent on a topic's unclean elections.",
    "unclean_leader_election_enable": "Time spent on changed settings of the controller.",
}


class ControllerMetrics:
    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    @contextmanager
    def timing(self, item: Item) -> Iterator[None]:
        """Measure the time spent on one event."""
        state = STATES[type(item)]
        with self._time(f"{STATS}_{state}_rate_and_time_ms", _STATE_DOCS[state]):
            yield

    def observe_queue_time(self, ms: float) -> None:
        self._registry.histogram(
            f"{EVENTS}_event_queue_time_ms", "Time an event waited for the controller."
        ).observe(ms)

    def add_queue(self, broker: int, waiting: Callable[[], int]) -> None:
        self._registry.gauge(
            f"{CHANNELS}_queue_size",
            "Requests waiting for a broker.",
            waiting,
            controlled_broker=str(broker),
        )

    def remove_queue(self, broker: int) -> None:
        self._registry.forget(controlled_broker=str(broker))

    @contextmanager
    def request(self, broker: int) -> Iterator[None]:
        """Measure the time until a broker replied or failed."""
        with self._time(
            f"{CHANNELS}_request_rate_and_queue_time_ms",
            "Time until a broker answered the controller.",
            controlled_broker=str(broker),
        ):
            yield

    @contextmanager
    def _time(self, name: str, doc: str, **labels: str) -> Iterator[None]:
        started = self._clock.mono_ns()
        try:
            yield
        finally:
            elapsed_ms = (self._clock.mono_ns() - started) / 1e6
            self._registry.histogram(name, doc, **labels).observe(elapsed_ms)

    def register_gauges(
        self, read: Callable[[], ControllerState], queued: Callable[[], int]
    ) -> None:
        """Register the gauges; all are zero on a broker that is not the active controller."""
        gauge = self._registry.gauge
        for state, doc in _STATE_DOCS.items():
            self._registry.histogram(f"{STATS}_{state}_rate_and_time_ms", doc)
        counts: dict[str, tuple[str, Callable[[ControllerState], int]]] = {
            "active_controller_count": ("1 on the active controller.", _active),
            "active_broker_count": ("Registered brokers.", lambda s: len(s.brokers)),
            "offline_partitions_count": (
                "Partitions without a leader.",
                ControllerState.offline_partition_count,
            ),
            "preferred_replica_imbalance_count": (
                "Partitions not led by their preferred replica.",
                election_requests.imbalance,
            ),
            "global_topic_count": ("Topics.", lambda s: len(s.topics)),
            "global_partition_count": ("Partitions.", _partitions),
            "topics_to_delete_count": ("Topics being deleted.", lambda s: len(s.deletions)),
            "topics_ineligible_to_delete_count": (
                "Topics whose deletion must wait.",
                lambda s: sum(deletion.ineligible for deletion in s.deletions.values()),
            ),
            "replicas_to_delete_count": ("Replicas being deleted.", _replicas_to_delete),
            "replicas_ineligible_to_delete_count": (
                "Replicas whose deletion must wait.",
                _replicas_ineligible,
            ),
        }
        for name, (doc, count) in counts.items():
            gauge(f"{GROUP}_{name}", doc, lambda count=count: count(read()))  # type: ignore[misc]
        self._registry.tally(
            f"{STATS}_unclean_leader_elections_total",
            "Leaders elected from outside the ISR.",
            lambda: read().unclean_elections,
        )
        gauge(f"{EVENTS}_event_queue_size", "Events waiting for the controller.", queued)


def _active(state: ControllerState) -> int:
    return int(state.epoch > 0)


def _partitions(state: ControllerState) -> int:
    return sum(len(topic.partitions) for topic in state.topics.values())


def _replicas_to_delete(state: ControllerState) -> int:
    return sum(
        len(partition.replicas)
        for name in state.deletions
        for partition in state.topics[name].partitions.values()
    )


def _replicas_ineligible(state: ControllerState) -> int:
    return sum(
        replica is ReplicaState.DELETION_INELIGIBLE
        for name in state.deletions
        for partition in state.topics[name].partitions.values()
        for replica in partition.replica_states.values()
    )
