from __future__ import annotations

import pytest

import ottla
from tests.cli.conftest import make_topic
from tests.cli.ottla_program import Run

TOPICS = "kafka-topics.sh"


@pytest.mark.spec("TOOL-04", "TOOL-05", "TOOL-06", "TOOL-07")
def test_topics_are_created_listed_described_grown_and_deleted(run_kafka: Run) -> None:
    words = ("--replication-factor", "1", "--partitions", "2", "--topic", "kafka-made")
    ran = run_kafka(TOPICS, "--create", *words, "--config", "retention.ms=77")
    assert ran.out == "Created topic kafka-made.\n"
    assert "kafka-made" in run_kafka(TOPICS, "--list").out.split()
    head, *partitions = run_kafka(TOPICS, "--describe", "--topic", "kafka-made").out.splitlines()
    assert "PartitionCount: 2\tReplicationFactor: 1\t" in head
    assert "retention.ms=77" in head
    assert len(partitions) == 2
    grown = run_kafka(TOPICS, "--alter", "--topic", "kafka-made", "--partitions", 3)
    assert (grown.code, grown.out) == (0, "")
    assert run_kafka(TOPICS, "--delete", "--topic", "kafka-made").code == 0
    assert "kafka-made" not in run_kafka(TOPICS, "--list").out.split()


def test_a_topic_may_be_placed_and_named_by_a_pattern(run_kafka: Run, admin: ottla.Admin) -> None:
    words = ("--create", "--topic", "placed-1", "--replica-assignment", "0,0")
    assert run_kafka(TOPICS, *words).code == 0
    assert len(admin.describe_topic("placed-1").partitions) == 2
    grow = ("--alter", "--topic", "placed-1", "--partitions", 3, "--replica-assignment", "0,0,0")
    assert run_kafka(TOPICS, *grow).code == 0
    shown = run_kafka(TOPICS, "--describe", "--topic", "placed-.,other").out
    assert "PartitionCount: 3" in shown


def test_filters_and_internal_topics(run_kafka: Run, admin: ottla.Admin, group: str) -> None:
    make_topic(admin)
    for kind in ("under-replicated", "unavailable", "under-min-isr"):
        assert run_kafka(TOPICS, "--describe", f"--{kind}-partitions").out == ""
    assert "Isr: 0" in run_kafka(TOPICS, "--describe", "--at-min-isr-partitions").out
    assert "__consumer_offsets" in run_kafka(TOPICS, "--list").out
    assert "__consumer_offsets" not in run_kafka(TOPICS, "--list", "--exclude-internal").out


def test_failures_are_said_as_kafkas_tool_says_them(run_kafka: Run, topic: str) -> None:
    exists = run_kafka(TOPICS, "--create", "--topic", topic)
    assert (exists.code, exists.out) == (
        1,
        f"Error while executing topic command : Topic '{topic}' already exists.\n",
    )
    assert run_kafka(TOPICS, "--create", "--topic", topic, "--if-not-exists").code == 0
    missing = run_kafka(TOPICS, "--describe", "--topic", "nowhere")
    assert (missing.code, missing.out) == (
        1,
        "Error while executing topic command : Topic 'nowhere' does not exist as expected\n",
    )
    assert run_kafka(TOPICS, "--delete", "--topic", "nowhere", "--if-exists").code == 0
    shrunk = run_kafka(TOPICS, "--alter", "--topic", topic, "--partitions", 1)
    assert (shrunk.code, "would not be an increase" in shrunk.out) == (1, True)


def test_mistakes_are_said_with_exit_code_1(run_kafka: Run, topic: str) -> None:
    run_kafka(TOPICS).failed(1, "exactly one action")
    run_kafka(TOPICS, "--list", "--create").failed(1, "exactly one action")
    run_kafka(TOPICS, "--create").failed(1, "[topic]")
    run_kafka(TOPICS, "--create", "--topic", "t", "--partitions", "x").failed(1, "--partitions")
    run_kafka(TOPICS, "--create", "--topic", "t", "--config", "x").failed(1, "--config 'x'")
    run_kafka(TOPICS, "--alter", "--topic", topic).failed(1, "--partitions")
    words = ("--create", "--topic", "t", "--replica-assignment", "a:b")
    run_kafka(TOPICS, *words).failed(1, "--replica-assignment 'a:b'")


def test_a_name_whose_metrics_may_collide_is_warned_of(run_kafka: Run) -> None:
    ran = run_kafka(TOPICS, "--create", "--topic", "with_underscore")
    assert ran.out.startswith("WARNING: Due to limitations in metric names")
