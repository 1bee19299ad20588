"""The metrics of a controller: counts, and the time each event took.

Owns the names. Counts are computed from the state when metrics are scraped; only times are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.controller import election_requests
from ottla.controller.state import ControllerState, ReplicaState
from ottla.model.clock import Clock
from ottla.model.metrics import Registry

GROUP = "kafka_controller_kafkacontroller"
STATS = "kafka_controller_controllerstats"
CHANNELS = "kafka_controller_controllerchannelmanager"
EVENTS = "kafka_controller_controllereventmanager"


class ControllerMetrics:
    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    @contextmanager
    def timing(self, item: object) -> Iterator[None]:
        """Measure the time spent on one event."""
        with self._time(
            f"{EVENTS}_event_time_ms",
            "Time the controller spent on one event.",
            event=type(item).__name__,
        ):
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
