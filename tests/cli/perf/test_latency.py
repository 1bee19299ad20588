from __future__ import annotations

from tests.cli.ottla_program import Run


def test_each_record_is_timed_from_end_to_end(run: Run, topic: str) -> None:
    [row] = run("perf", "latency", topic, "-n", 5, "--json").json
    assert row["records"] == 5
    assert 0 < row["p50_ms"] <= row["max_ms"]


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("perf", "latency", topic, "--size", "-1").failed(2, "--size")
    run("perf", "latency", topic, "--set", "acks").failed(2, "--set 'acks'")
