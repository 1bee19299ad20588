from __future__ import annotations

import pytest

import ottla
from ottla.client.admin import Resource
from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-18")
def test_settings_get_a_value(run: Run, admin: ottla.Admin, topic: str) -> None:
    words = ("retention.ms=1", "segment.ms=2", "--name", topic)
    assert run("configs", "set", "topic", *words).out == "set retention.ms, segment.ms\n"
    assert admin.describe_configs([Resource.topic(topic)]).one()["segment.ms"].value == "2"


def test_a_dry_run_changes_nothing(run: Run, admin: ottla.Admin, topic: str) -> None:
    ran = run("configs", "set", "topic", "segment.ms=1", "--name", topic, "--dry-run")
    assert ran.out == "accepted; nothing was changed\n"
    assert admin.describe_configs([Resource.topic(topic)]).one()["segment.ms"].is_default


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("configs", "set", "topic", "retention.ms", "--name", topic).failed(2, "KEY=VALUE")
    run("configs", "set", "topic", "retention.ms=1").failed(2, "--name is required for topic")
    run("configs", "set", "table", "a=1").failed(2, "KIND")
    run("configs", "set", "topic", "retention.ms=x", "--name", topic).failed(1, "retention.ms")
    run("configs", "set", "broker", "a=1", "--name", "77").failed(1, "no broker 77")
