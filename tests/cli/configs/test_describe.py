from __future__ import annotations

import pytest

import ottla
from ottla.client.admin import Resource
from tests.cli.conftest import make_topic
from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-18")
def test_what_was_changed_is_shown_and_with_all_everything(run: Run, admin: ottla.Admin) -> None:
    topic = make_topic(admin, retention_ms="1234")
    changed = run("configs", "describe", "topic", "--name", topic, "--json").json
    [row] = [row for row in changed if row["name"] == "retention.ms"]
    assert (row["value"], row["source"]) == ("1234", "dynamic topic")
    everything = run("configs", "describe", "topic", "--name", topic, "--all", "--json").json
    assert len(everything) > len(changed)
    [one] = run("configs", "describe", "topic", "segment.ms", "--name", topic, "--json").json
    assert one["source"] == "default"


def test_brokers_have_settings_too(run: Run, admin: ottla.Admin) -> None:
    assert "broker.id" in run("configs", "describe", "broker", "--name", 0, "--all").out
    assert run("configs", "describe", "brokers").out == "brokers: none\n"
    assert run("configs", "describe", "loggers", "--name", 0, "--all").code == 0


def test_mistakes_are_said_in_a_line(run: Run) -> None:
    run("configs", "describe", "topic", "--name", "nowhere").failed(1, "topic nowhere")
    run("configs", "describe", "brokers", "--name", "1").failed(2, "--name")
    assert str(Resource.topic("nowhere")) == "topic nowhere"
