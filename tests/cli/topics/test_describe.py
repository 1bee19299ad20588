from __future__ import annotations

import pytest

import ottla
from ottla.cli.topics.show import overrides
from tests.cli.conftest import make_topic
from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-06")
def test_a_topic_is_shown_with_its_partitions_and_settings(run: Run, admin: ottla.Admin) -> None:
    topic = make_topic(admin, 2, retention_ms="1234")
    shown = run("topics", "describe", topic, "--json").json
    [row] = shown["topics"]
    assert row["configs"]["retention.ms"] == "1234"
    assert [(one["partition"], one["leader"], one["in_sync"]) for one in shown["partitions"]] == [
        (0, 0, [0]),
        (1, 0, [0]),
    ]
    assert "1234" in run("topics", "describe", topic).out


def test_everything_is_shown_by_default_and_filters_leave_out_what_is_well(
    run: Run, topic: str
) -> None:
    assert topic in {row["topic"] for row in run("topics", "describe", "--json").json["topics"]}
    assert run("topics", "describe", "--under-replicated", "--json").json == []
    assert run("topics", "describe", topic, "--unavailable").out == "partitions: none\n"


def test_a_topic_that_is_not_there_is_named(run: Run) -> None:
    run("topics", "describe", "nowhere").failed(1, "nowhere: unknown topic or partition")


def test_only_what_differs_from_the_default_is_an_override(admin: ottla.Admin, topic: str) -> None:
    found = overrides(admin, [admin.describe_topic(topic)])
    assert "segment.ms" not in found[topic]
