from __future__ import annotations

import ottla
from ottla.client.admin import Resource
from tests.cli.conftest import make_topic
from tests.cli.ottla_program import Run


def test_settings_go_back_to_their_default(run: Run, admin: ottla.Admin) -> None:
    topic = make_topic(admin, segment_ms="1234")
    ran = run("configs", "delete", "topic", "segment.ms", "--name", topic)
    assert ran.out == "deleted segment.ms\n"
    assert admin.describe_configs([Resource.topic(topic)]).one()["segment.ms"].is_default


def test_mistakes_are_said_in_a_line(run: Run, topic: str) -> None:
    run("configs", "delete", "topic", "--name", topic).failed(2, "KEY")
    run("configs", "delete", "topic", "a", "--name", "nowhere").failed(1, "topic nowhere")
    run("configs", "delete", "group", "x").failed(2, "--name is required for group")
