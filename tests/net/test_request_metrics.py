"""Request metrics: every request counted, its time cut into parts that add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.metrics import Histogram, Metric, Registry, Tally
from ottla.net.request_metrics import GROUP, STAGES, RequestMetrics
from ottla.net.request_slot import RequestSlot
from tests.fakes.manual_time import ManualClock
from tests.net.rig import FakeReplyOrder

US = 1_000
MS = 1_000_000


def slot(api: int, received: int, started: int, local: int, done: int) -> RequestSlot:
    made = RequestSlot(FakeReplyOrder(), api, received, started)
    made.local_ns, made.done_ns = local, done
    return made


def metrics() -> tuple[RequestMetrics, Registry, ManualClock]:
    registry, clock = Registry(), ManualClock()
    return RequestMetrics(registry, {0: "Produce", 1: "Fetch"}, clock), registry, clock


def shown(registry: Registry, request: str) -> dict[str, Metric]:
    """The metrics of one kind of request as they are read, by name without the group."""
    return {
        family.name.removeprefix(f"{GROUP}_"): family.metrics[("request", request),]
        for family in registry.families()
        if family.name.startswith(GROUP)
    }


def times(registry: Registry, request: str) -> dict[str, Histogram]:
    return {
        name.removesuffix("_time_ms"): metric
        for name, metric in shown(registry, request).items()
        if isinstance(metric, Histogram)
    }


def count(registry: Registry, request: str) -> float:
    metric = shown(registry, request)["requests_total"]
    assert isinstance(metric, Tally)
    return metric.value


@pytest.mark.spec("MON-02", "MON-03", "MON-04", "MON-05", "MON-06", "MON-07", "NET-38")
def test_a_slow_request_is_cut_into_its_stages() -> None:
    requests, registry, _ = metrics()
    requests.record([slot(0, 0, 1 * MS, 3 * MS, 7 * MS)], 15 * MS, 31 * MS)
    stages = times(registry, "Produce")
    assert {name: stage.total for name, stage in stages.items()} == {
        "request_queue": 1.0,
        "local": 2.0,
        "remote": 4.0,
        "response_queue": 8.0,
        "response_send": 16.0,
        "total": 31.0,
    }
    assert {stage.count for stage in stages.values()} == {1}
    assert count(registry, "Produce") == 1


@pytest.mark.spec("MON-02", "MON-07")
@given(
    st.lists(st.tuples(*[st.integers(0, 80 * US)] * 4), min_size=1, max_size=6),
    st.integers(0, 80 * US),
)
def test_however_requests_are_gathered_each_stage_of_each_is_observed(
    cuts: list[tuple[int, ...]], send_ns: int
) -> None:
    """Around the first bucket's bound, where what is quick is counted another way."""
    requests, registry, _ = metrics()
    flush_ns = 400 * US
    observed = {name.removesuffix("_time_ms"): Histogram() for name in STAGES}
    slots = []
    for queued, local, remote, waited in cuts:
        done = flush_ns - waited
        slots.append(
            slot(0, done - remote - local - queued, done - remote - local, done - remote, done)
        )
        parts = (queued, local, remote, waited, send_ns, queued + local + remote + waited + send_ns)
        for stage, ns in zip(observed.values(), parts, strict=True):
            stage.observe(ns / MS)
    requests.record(slots, flush_ns, flush_ns + send_ns)
    times(registry, "Produce")  # reading changes nothing
    for name, stage in times(registry, "Produce").items():
        assert stage.counts == observed[name].counts, name
        assert stage.total == pytest.approx(observed[name].total), name
    assert count(registry, "Produce") == len(cuts)


def test_requests_of_different_kinds_that_left_together_are_told_apart() -> None:
    requests, registry, _ = metrics()
    requests.record([slot(0, 0, 0, 0, 0), slot(1, 0, 0, 0, 0), slot(0, 0, 0, 0, 0)], 1, 2)
    assert (count(registry, "Produce"), count(registry, "Fetch")) == (2, 1)


def test_peers_cannot_invent_names() -> None:
    requests, registry, _ = metrics()
    for key in range(1_000, 2_000):
        requests.record([slot(key, 0, 0, 0, 0)], 1, 2)
    assert count(registry, "Unknown") == 1_000
    labels = [family.metrics for family in registry.families() if "requests_total" in family.name]
    assert len(labels[0]) == 1


@pytest.mark.spec("MON-11")
def test_the_idle_share_is_what_was_not_spent_in_turns() -> None:
    requests, registry, clock = metrics()
    requests.watch_loop()
    gauges = [
        gauge for family in registry.families() for gauge in family.metrics.values()
        if callable(gauge)
    ]  # fmt: skip
    assert len(gauges) == 2
    clock.ns += 2_000 * MS
    requests.busy_ns += 500 * MS
    assert [gauge() for gauge in gauges] == [0.75, 0.75]
    clock.ns += 1_000 * MS
    assert [gauge() for gauge in gauges] == [1.0, 1.0]
