from __future__ import annotations

import pytest

import ottla
from ottla.client.admin import Resource
from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-07")
def test_a_topic_grows_and_changes_its_settings(run: Run, admin: ottla.Admin, topic: str) -> None:
    words = ("--partitions", 4, "--config", "segment.ms=77")
    assert run("topics", "alter", topic, *words).out == f"altered {topic}\n"
    assert len(admin.describe_topic(topic).partitions) == 4
    assert run("topics", "alter", topic, "--delete-config", "segment.ms").code == 0
    found = admin.describe_configs([Resource.topic(topic)]).one()
    assert found["segment.ms"].is_default


@pytest.mark.spec("TOOL-07")
def test_a_topic_cannot_shrink(run: Run, topic: str) -> None:
    run("topics", "alter", topic, "--partitions", 1).failed(1, "would not be an increase")


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("topics", "alter", topic).failed(2, "--partitions, --config or --delete-config")
    run("topics", "alter", topic, "-c", "x").failed(2, "--config 'x': expected key=value")
    run("topics", "alter", "nowhere", "-p", 2).failed(1, "nowhere")
    run("topics", "alter", topic, "-c", "no.such=1").failed(1, "no.such")
