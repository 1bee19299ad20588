from __future__ import annotations

import pytest

import ottla
from ottla.cli.offsets.list import expand_partitions
from ottla.model.ids import TopicPartition
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.raw_requests import NOW_MS, Line, batch, produced


@pytest.mark.spec("TOOL-18")
def test_both_ends_are_shown_or_the_offset_at_a_time(
    run: Run, topic: str, cli_broker: Broker
) -> None:
    with Line(cli_broker.bootstrap_servers) as line:
        for at in range(3):
            produced(line, topic, batch("x", timestamp=NOW_MS + at * 1000))
    ends = run("offsets", "list", topic, "--json").json
    assert [(row["partition"], row["start"], row["end"], row["offsets"]) for row in ends] == [
        (0, 0, 3, 3),
        (1, 0, 0, 0),
    ]
    [later] = run("offsets", "list", f"{topic}:0", "--at", NOW_MS + 500, "--json").json
    assert later["offset"] == 1
    [none] = run("offsets", "list", f"{topic}:1", "--at", "1h", "--read-committed", "--json").json
    assert none["offset"] is None


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("offsets", "list", topic, "--at", "noon").failed(2, "--at 'noon': expected a time")
    run("offsets", "list", f"{topic}:x").failed(2, "expected TOPIC or TOPIC:PARTITION")
    run("offsets", "list", "nowhere").failed(1, "nowhere")
    run("offsets", "list", f"{topic}:9").failed(1, f"{topic}-9")
    run("offsets", "list").failed(2, "TOPIC")


def test_a_topic_without_partitions_means_all_of_them(admin: ottla.Admin, topic: str) -> None:
    assert expand_partitions(admin, [(topic, None), ("other", (7,))]) == [
        TopicPartition(topic, 0),
        TopicPartition(topic, 1),
        TopicPartition("other", 7),
    ]
