from __future__ import annotations

import pytest

import ottla
from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-04")
def test_topics_are_created_with_what_was_asked_for(run: Run, admin: ottla.Admin) -> None:
    words = ("--partitions", 3, "--replication-factor", 1, "--config", "retention.ms=5000")
    shown = run("topics", "create", "made-1", "made-2", *words, "--json").json
    assert [(row["topic"], row["partitions"], row["replication_factor"]) for row in shown] == [
        ("made-1", 3, 1),
        ("made-2", 3, 1),
    ]
    assert len(admin.describe_topic("made-1").partitions) == 3


def test_a_topic_that_exists_fails_unless_that_is_fine(run: Run, topic: str) -> None:
    run("topics", "create", topic).failed(1, f"ottla: {topic}: Topic '{topic}' already exists.")
    assert run("topics", "create", topic, "--if-not-exists").code == 0


def test_one_bad_name_does_not_keep_the_others_from_being_made(
    run: Run, admin: ottla.Admin
) -> None:
    ran = run("topics", "create", "bad name", "good-name")
    ran.failed(1, "bad name")
    assert "good-name" in ran.out
    assert "good-name" in admin.list_topics()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("t", "--partitions", "0"), "--partitions"),
        (("t", "--partitions", "many"), "--partitions"),
        (("t", "--config", "retention.ms"), "--config 'retention.ms': expected key=value"),
        ((), "TOPIC"),
    ],
)
def test_mistakes_are_said_before_anything_is_done(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    run("topics", "create", *words).failed(2, said)


def test_what_the_broker_refuses_is_exit_code_1(run: Run) -> None:
    run("topics", "create", "t", "--replication-factor", 9).failed(1, "t:")
    run("topics", "create", "t", "-c", "retention.ms=soon").failed(1, "retention.ms")
