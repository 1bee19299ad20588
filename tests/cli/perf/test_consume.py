from __future__ import annotations

from tests.cli.ottla_program import Run


def test_records_are_read_and_timed(run: Run, topic: str) -> None:
    run("perf", "produce", topic, "-n", 300)
    [row] = run("perf", "consume", topic, "--json").json
    assert row["records"] == 300
    [some] = run("perf", "consume", topic, "-n", 10, "--set", "max.poll.records=10", "--json").json
    assert some["records"] == 10


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("perf", "consume", "nowhere").failed(1, "nowhere")
    run("perf", "consume", topic, "--set", "a=b").failed(2, "a: Consumer has no such option")
