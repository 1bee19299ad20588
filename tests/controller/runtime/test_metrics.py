"""What can be read about a controller from outside."""

from __future__ import annotations

from typing import get_args

import pytest

from ottla.controller.events import BalanceDue
from ottla.controller.runtime.event_queue import Item
from ottla.controller.runtime.metrics import EVENTS, GROUP, STATES, STATS, ControllerMetrics
from ottla.model.metrics import Histogram, Registry, Tally
from tests.controller.transcript import Actor
from tests.fakes.manual_time import ManualClock


def read(registry: Registry, name: str) -> float:
    (family,) = [family for family in registry.families() if family.name == name]
    (metric,) = family.metrics.values()
    if isinstance(metric, Tally):
        return metric.value
    assert callable(metric)
    return metric()


@pytest.mark.spec("MON-14", "MON-15", "CTL-33")
def test_counts_follow_the_state() -> None:
    actor, registry = Actor(), Registry()
    ControllerMetrics(registry, ManualClock()).register_gauges(lambda: actor.state, lambda: 3)
    assert read(registry, f"{GROUP}_active_controller_count") == 0
    actor.run("elected 1 1 2 t-0=1,2/2/1,2 t-1=2/2/2 u-0=2/2/2")
    actor.run("brokers 1")
    actor.run("delete u")
    expected = {
        "active_controller_count": 1,
        "active_broker_count": 1,
        "offline_partitions_count": 1,
        "preferred_replica_imbalance_count": 1,
        "global_topic_count": 2,
        "global_partition_count": 3,
        "topics_to_delete_count": 1,
        "topics_ineligible_to_delete_count": 1,
        "replicas_to_delete_count": 1,
        "replicas_ineligible_to_delete_count": 1,
    }
    for name, value in expected.items():
        assert read(registry, f"{GROUP}_{name}") == value, name
    assert read(registry, f"{EVENTS}_event_queue_size") == 3
    assert read(registry, f"{STATS}_unclean_leader_elections_total") == 0


@pytest.mark.spec("MON-16", "CTL-27")
def test_everything_that_a_controller_handles_is_timed_under_a_state_of_kafka() -> None:
    kinds = {kind for union in get_args(Item) for kind in get_args(union) or (union,)}
    assert kinds == STATES.keys()


@pytest.mark.spec("MON-16", "MON-17", "CTL-27")
def test_events_and_requests_are_timed_by_kind_and_broker() -> None:
    clock, registry = ManualClock(), Registry()
    metrics = ControllerMetrics(registry, clock)
    with metrics.timing(BalanceDue()):
        clock.ns += 4_000_000
    metrics.add_queue(1, lambda: 5)
    with metrics.request(1):
        clock.ns += 7_000_000
    families = {family.name: family.metrics for family in registry.families()}
    timed = families[f"{STATS}_auto_leader_balance_rate_and_time_ms"][()]
    assert isinstance(timed, Histogram)
    assert (timed.count, timed.total) == (1, 4)
    metrics.remove_queue(1)
    assert not any(
        ("controlled_broker", "1") in labels
        for family in registry.families()
        for labels in family.metrics
    )
