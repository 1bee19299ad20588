from __future__ import annotations

import ottla
from tests.cli.ottla_program import Run


def test_topics_are_deleted(run: Run, admin: ottla.Admin, topic: str) -> None:
    assert run("topics", "delete", topic).out == f"deleted {topic}\n"
    assert topic not in admin.list_topics()


def test_a_topic_that_is_not_there_fails_unless_that_is_fine(run: Run, topic: str) -> None:
    ran = run("topics", "delete", "nowhere", topic)
    ran.failed(1, "nowhere: unknown topic or partition")
    assert ran.out == f"deleted {topic}\n"
    assert run("topics", "delete", "nowhere", "--if-exists").code == 0
    run("topics", "delete").failed(2, "TOPIC")
