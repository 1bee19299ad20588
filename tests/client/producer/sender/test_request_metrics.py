"""How many requests there were, and how long brokers took."""

from __future__ import annotations

import pytest

from ottla.client.producer.sender.request_metrics import SAMPLE_NS, Latency, RequestMetrics
from tests.client.producer.rig import batch

MS = 1_000_000


@pytest.mark.spec("MON-24")
def test_a_request_is_counted_with_the_records_of_all_its_batches() -> None:
    metrics = RequestMetrics()
    assert (metrics.count, metrics.average_records) == (0, 0)
    metrics.on_sent([batch(b"1", b"2"), batch(b"3")])
    metrics.on_sent([batch(b"4")])
    assert (metrics.count, metrics.average_records) == (2, 2)


@pytest.mark.spec("MON-24")
def test_the_latency_has_an_average_and_a_maximum_in_milliseconds() -> None:
    metrics = RequestMetrics()
    assert metrics.latency(0) == Latency(0, 0)
    for latency_ms in (1, 2, 6):
        metrics.on_response(latency_ms * MS, now_ns=10 * MS)
    metrics.on_response(MS // 2, now_ns=10 * MS)
    assert metrics.latency(11 * MS) == Latency(9.5 / 4, 6)


@pytest.mark.spec("MON-24")
def test_a_slow_response_is_forgotten_after_a_minute_at_most() -> None:
    metrics = RequestMetrics()
    metrics.on_response(900 * MS, now_ns=0)
    metrics.on_response(3 * MS, now_ns=SAMPLE_NS)
    assert metrics.latency(2 * SAMPLE_NS - 1).max_ms == 900
    assert metrics.latency(2 * SAMPLE_NS) == Latency(3, 3)
    metrics.on_response(5 * MS, now_ns=2 * SAMPLE_NS)
    assert metrics.latency(2 * SAMPLE_NS) == Latency(4, 5)
    assert metrics.latency(9 * SAMPLE_NS) == Latency(0, 0), "no response for minutes"
