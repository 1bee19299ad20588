from __future__ import annotations

import ottla
from ottla.model.ids import TopicPartition
from tests.cli.ottla_program import Run


def test_a_group_is_forgotten(run: Run, admin: ottla.Admin, group: str) -> None:
    assert run("groups", "delete", group).out == f"deleted {group}\n"
    assert group not in [one.id for one in admin.list_groups()]


def test_only_the_offsets_of_a_topic_may_go(
    run: Run, admin: ottla.Admin, group: str, topic: str
) -> None:
    assert run("groups", "delete", group, "--topic", f"{topic}:0").code == 0
    assert list(admin.list_group_offsets(group)) == [TopicPartition(topic, 1)]


def test_mistakes_are_said_in_a_line(run: Run, group: str) -> None:
    run("groups", "delete", "nobody").failed(1, "nobody")
    run("groups", "delete", group, "--topic", "nowhere").failed(1, "nowhere")
    run("groups", "delete", group, "--topic", "t:x").failed(2, "--topic 't:x'")
