"""What is read from Kafka's perf tool."""

from __future__ import annotations

from benchmarks.throughput import perf_test_rate


def test_the_last_line_of_the_perf_tool_counts() -> None:
    said = (
        "50000 records sent, 9999.0 records/sec (9.54 MB/sec), 1.1 ms avg latency.\n"
        "100000 records sent, 74349.442379 records/sec (7.09 MB/sec), 565.74 ms avg latency.\n"
    )
    assert perf_test_rate(said) == 74349.442379
