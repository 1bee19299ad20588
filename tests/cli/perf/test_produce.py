from __future__ import annotations

from tests.cli.ottla_program import Run


def test_records_are_sent_and_timed(run: Run, topic: str) -> None:
    [row] = run("perf", "produce", topic, "-n", 200, "--size", 10, "--json").json
    assert row["records"] == 200
    assert row["records/s"] > 0
    assert row["p50_ms"] <= row["max_ms"]
    assert len(run("consume", topic).out.split()) == 200


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("perf", "produce", topic, "-n", 0).failed(2, "--records")
    run("perf", "produce", topic, "--set", "acks=9").failed(2, "acks='9'")
    run("perf", "produce", "bad name", "--set", "max.block.ms=300").failed(1, "bad name")
