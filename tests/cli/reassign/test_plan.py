from __future__ import annotations

import pytest

from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-16")
def test_a_plan_names_every_partition(run: Run, topic: str) -> None:
    row = {"topic": topic, "replicas": [0]}
    wanted = {"version": 1, "partitions": [{**row, "partition": 0}, {**row, "partition": 1}]}
    assert run("reassign", "plan", topic).json == wanted
    assert run("reassign", "plan", topic, "--current").json == wanted
    assert run("reassign", "plan", topic, "--brokers", "5").json["partitions"][0]["replicas"] == [5]


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("reassign", "plan", topic, "--brokers", "a").failed(2, "--brokers 'a'")
    run("reassign", "plan", topic, "--brokers", "1,1").failed(2, "different ids")
    run("reassign", "plan", topic, "-r", 2).failed(2, "replication factor 2 exceeds")
    run("reassign", "plan", "nowhere").failed(1, "nowhere")
