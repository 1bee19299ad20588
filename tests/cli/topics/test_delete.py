from __future__ import annotations

import pytest

import ottla
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.cli.terminal import on_a_terminal


def test_topics_are_deleted(run: Run, admin: ottla.Admin, topic: str) -> None:
    assert run("topics", "delete", topic, "--yes").out == f"deleted {topic}\n"
    assert topic not in admin.list_topics()


def test_a_topic_that_is_not_there_fails_unless_that_is_fine(run: Run, topic: str) -> None:
    ran = run("topics", "delete", "nowhere", topic, "--yes")
    ran.failed(1, "nowhere: ")
    assert ran.out == f"deleted {topic}\n"
    assert run("topics", "delete", "nowhere", "--if-exists", "-y").code == 0
    run("topics", "delete").failed(2, "TOPIC")


def test_without_a_terminal_nothing_is_deleted_unless_told_so(
    run: Run, admin: ottla.Admin, topic: str
) -> None:
    run("topics", "delete", topic, stdin="y\n").failed(2, "use --yes", "--dry-run")
    assert topic in admin.list_topics()


def test_a_dry_run_shows_how_much_would_go_and_deletes_nothing(
    run: Run, admin: ottla.Admin, topic: str
) -> None:
    run("produce", topic, "--partition", 1, stdin="one\ntwo\n")
    ran = run("topics", "delete", topic, "nowhere", "--dry-run")
    ran.failed(1, "nowhere: unknown topic")
    [row] = [line.split("│") for line in ran.out.splitlines() if topic in line]
    assert [cell.strip() for cell in row[1:4]] == [topic, "2", "2"]
    assert int(row[4]) > 0
    assert topic in admin.list_topics()


@pytest.mark.parametrize(("answer", "is_deleted"), [("n", False), ("y", True)])
def test_on_a_terminal_it_shows_what_would_go_and_asks(
    admin: ottla.Admin, cli_broker: Broker, topic: str, answer: str, is_deleted: bool
) -> None:
    words = ["topics", "delete", topic, "-b", cli_broker.bootstrap_servers]
    code, shown = on_a_terminal(words, "delete them? [y/N]", answer)
    assert "to be deleted" in shown and "records" in shown
    assert code == (0 if is_deleted else 1)
    assert (topic not in admin.list_topics()) == is_deleted
