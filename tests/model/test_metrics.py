from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.metrics import BUCKETS_MS, Counter, Histogram, Registry, Tally


def test_a_metric_is_made_once_and_found_again_by_name_and_labels() -> None:
    registry = Registry()
    one = registry.counter("bytes_total", "Bytes.", topic="a")
    one.value += 5
    assert registry.counter("bytes_total", "Bytes.", topic="a") is one
    assert registry.counter("bytes_total", "Bytes.", topic="b").value == 0
    time = registry.histogram("time_ms", "Time.", b="2", a="1")
    assert registry.histogram("time_ms", "Time.", a="1", b="2") is time


def test_families_come_in_the_order_of_their_names_with_what_they_say() -> None:
    registry = Registry()
    registry.gauge("size", "How large.", lambda: 7.0)
    registry.counter("count_total", "How many.")
    assert [(one.name, one.doc) for one in registry.families()] == [
        ("count_total", "How many."),
        ("size", "How large."),
    ]


def test_a_gauge_and_a_tally_are_read_when_asked_and_replaced_when_offered_again() -> None:
    registry, now = Registry(), [1.0]
    registry.gauge("size", "Size.", lambda: 0)
    registry.gauge("size", "Size.", lambda: now[0])
    registry.tally("evictions_total", "Evictions.", lambda: now[0])
    evictions, size = (next(iter(one.metrics.values())) for one in registry.families())
    now[0] = 9
    assert isinstance(evictions, Tally)
    assert callable(size)
    assert (evictions.value, size()) == (9, 9)


def test_a_series_lists_what_is_there_when_asked() -> None:
    registry, logs = Registry(), {"a": 1.0}
    registry.series("log_size", "Size.", lambda: [((("topic", t),), n) for t, n in logs.items()])
    logs["b"] = 2.0
    (family,) = registry.families()
    assert family.series is not None
    assert list(family.series()) == [((("topic", "a"),), 1.0), ((("topic", "b"),), 2.0)]


@pytest.mark.spec("MON-26")
def test_what_carries_a_forgotten_label_is_gone_and_the_rest_stays() -> None:
    registry = Registry()
    for topic in ("a", "b"):
        registry.counter("bytes_total", "Bytes.", topic=topic)
        registry.gauge("lag", "Lag.", lambda: 0, topic=topic, partition="0")
    registry.counter("all_bytes_total", "Bytes.")
    registry.forget(topic="a")
    left = {(one.name, labels) for one in registry.families() for labels in one.metrics}
    assert left == {
        ("all_bytes_total", ()),
        ("bytes_total", (("topic", "b"),)),
        ("lag", (("partition", "0"), ("topic", "b"))),
    }


class _CountedDict(dict[object, object]):
    """Counts how often somebody looks through all of it."""

    walks = 0

    def __iter__(self) -> Iterator[object]:
        self.walks += 1
        return super().__iter__()


def test_forgetting_one_topic_looks_at_no_metric_of_another() -> None:
    registry = Registry()
    for number in range(50):
        registry.counter("bytes_total", "Bytes.", topic=f"t{number}", partition="0")
    family = next(iter(registry.families()))
    family.metrics = counted = _CountedDict(family.metrics)  # type: ignore[assignment, arg-type]
    registry.forget(topic="t7")
    assert counted.walks == 0
    assert len(counted) == 49


def test_forgetting_needs_all_of_the_labels_and_leaves_no_trace() -> None:
    registry = Registry()
    for topic in ("a", "b"):
        for partition in ("0", "1"):
            registry.counter("bytes_total", "Bytes.", topic=topic, partition=partition)
    registry.forget(topic="a", partition="1")
    registry.forget(topic="nobody")
    family = next(iter(registry.families()))
    left = {tuple(value for _, value in labels) for labels in family.metrics}
    assert left == {("0", "a"), ("0", "b"), ("1", "b")}
    first = registry.counter("bytes_total", "Bytes.", topic="a", partition="1")
    registry.forget(topic="a")  # one that came again can be forgotten again
    assert registry.counter("bytes_total", "Bytes.", topic="a", partition="1") is not first


@given(st.lists(st.floats(0, 100_000)))
def test_every_observation_falls_under_the_first_bound_that_covers_it(values: list[float]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    assert histogram.count == len(values)
    assert histogram.total == pytest.approx(sum(values))
    for number, bound in enumerate(BUCKETS_MS):
        assert sum(histogram.counts[: number + 1]) == sum(value <= bound for value in values)


def test_a_counter_starts_at_zero() -> None:
    assert Counter().value == 0
