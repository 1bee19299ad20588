"""What is read from Kafka's perf tools."""

from __future__ import annotations

from benchmarks.java import consumer_perf_rate, perf_test_rate


def test_the_last_line_of_the_producer_tool_counts() -> None:
    said = (
        "50000 records sent, 9999.0 records/sec (9.54 MB/sec), 1.1 ms avg latency.\n"
        "100000 records sent, 74349.442379 records/sec (7.09 MB/sec), 565.74 ms avg latency.\n"
    )
    assert perf_test_rate(said) == 74349.442379


def test_the_consumer_tool_is_read_by_the_names_of_its_columns() -> None:
    said = (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n"
        "2026-11-15 08:23:55:361, 2026-11-15 08:23:59:286, 9.5367, 2.4297, 100000, 25477.7070, "
        "3637, 288, 33.1137, 347222.2222\n"
    )
    assert consumer_perf_rate(said) == 347222.2222
