"""Counters of what goes in and out, by topic and in all."""

from __future__ import annotations

import pytest

from ottla.model.metrics import Registry
from ottla.replica.topic_metrics import GROUP, BrokerTopicMetrics


def names(registry: Registry) -> set[str]:
    return {family.name for family in registry.families() if family.metrics}


@pytest.mark.spec("MON-12")
def test_a_topic_has_one_set_of_counters_however_often_it_is_asked_for() -> None:
    metrics = BrokerTopicMetrics(Registry())
    assert metrics.of("t") is metrics.of("t")
    assert metrics.of("t") is not metrics.of("u")
    assert metrics.of("t").bytes_in is not metrics.all.bytes_in


@pytest.mark.spec("MON-12")
def test_followers_and_consumers_are_counted_apart() -> None:
    one = BrokerTopicMetrics(Registry()).of("t")
    one.sent(to_follower=True).value += 3
    one.sent(to_follower=False).value += 4
    assert (one.replication_bytes_out.value, one.bytes_out.value) == (3, 4)


@pytest.mark.spec("MON-26")
def test_a_thousand_topics_that_came_and_went_leave_nothing_behind() -> None:
    registry = Registry()
    metrics = BrokerTopicMetrics(registry)
    before = names(registry)
    for index in range(1_000):
        metrics.of(f"t{index}").bytes_in.value += 1
        metrics.forget(f"t{index}")
    assert names(registry) == before
    assert metrics.of("t0").bytes_in.value == 0


@pytest.mark.spec("MON-12")
def test_the_totals_have_names_of_their_own_so_that_sums_are_right() -> None:
    registry = Registry()
    BrokerTopicMetrics(registry).of("t")
    found = names(registry)
    assert {f"{GROUP}_bytes_in_total", f"{GROUP}_all_topics_bytes_in_total"} <= found
