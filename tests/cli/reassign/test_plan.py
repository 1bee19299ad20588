from __future__ import annotations

import pytest

import ottla
from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-16")
def test_a_plan_names_every_partition(run: Run, topic: str) -> None:
    row = {"topic": topic, "replicas": [0]}
    wanted = {"version": 1, "partitions": [{**row, "partition": 0}, {**row, "partition": 1}]}
    assert run("reassign", "plan", topic).json == wanted
    assert run("reassign", "plan", topic, "--current").json == wanted
    assert run("reassign", "plan", topic, "--brokers", "5").json["partitions"][0]["replicas"] == [5]


@pytest.mark.spec("TOOL-16")
def test_a_plan_of_all_topics_has_the_internal_ones_too(
    run: Run, topic: str, admin: ottla.Admin
) -> None:
    run("groups", "reset-offsets", "planned", "--topic", topic, "--to", "earliest", "--execute")
    described = admin.describe_topics(admin.list_topics(internal=True)).all()
    partitions = {(name, one.index) for name in described for one in described[name].partitions}
    assert ("__consumer_offsets", 0) in partitions
    planned = run("reassign", "plan", "--all").json["partitions"]
    assert {(row["topic"], row["partition"]) for row in planned} == partitions
    run("reassign", "plan").failed(2, "expected the names of topics, or --all")
    run("reassign", "plan", topic, "--all").failed(2, "expected the names of topics, or --all")


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("reassign", "plan", topic, "--brokers", "a").failed(2, "--brokers 'a'")
    run("reassign", "plan", topic, "--brokers", "1,1").failed(2, "different ids")
    run("reassign", "plan", topic, "-r", 2).failed(2, "replication factor 2 exceeds")
    run("reassign", "plan", "nowhere").failed(1, "nowhere")
