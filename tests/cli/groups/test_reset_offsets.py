from __future__ import annotations

import pytest

import ottla
from ottla.cli.groups.plan import OffsetMove, ResetTarget
from ottla.cli.groups.reset_offsets import reset_target
from ottla.model.ids import TopicPartition
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.client.admin.group_members import joined
from tests.raw_requests import Line, batch, produced


@pytest.fixture
def filled(topic: str, group: str, cli_broker: Broker) -> str:
    with Line(cli_broker.bootstrap_servers) as line:
        produced(line, topic, batch("a", "b", "c"))
    return topic


def committed(admin: ottla.Admin, group: str) -> dict[int, int]:
    return {one.partition: at.offset for one, at in admin.list_group_offsets(group).all().items()}


def test_a_dry_run_only_shows_and_executing_moves(
    run: Run, admin: ottla.Admin, filled: str, group: str
) -> None:
    shown = run("groups", "reset-offsets", group, "--to", "latest", "--json").json
    assert [(row["partition"], row["from"], row["to"]) for row in shown] == [(0, 0, 3), (1, 0, 0)]
    assert committed(admin, group) == {0: 0, 1: 0}
    assert "would move" in run("groups", "reset-offsets", group, "--to", "latest").out
    assert run("groups", "reset-offsets", group, "--to", "latest", "--execute").code == 0
    assert committed(admin, group) == {0: 3, 1: 0}
    words = ("--topic", f"{filled}:0", "--shift-by", "-1", "--execute")
    assert run("groups", "reset-offsets", group, *words).code == 0
    assert committed(admin, group)[0] == 2


def test_a_new_group_begins_where_it_is_told(run: Run, admin: ottla.Admin, filled: str) -> None:
    name = f"new-{filled}"
    words = ("--topic", filled, "--to-time", "2999-01-01", "--execute")
    assert run("groups", "reset-offsets", name, *words).code == 0
    assert admin.list_group_offsets(name)[TopicPartition(filled, 0)]


def test_a_group_with_members_is_left_alone(run: Run, topic: str, cli_broker: Broker) -> None:
    member = joined(cli_broker, topic)
    ran = run("groups", "reset-offsets", topic, "--to", "earliest", "--topic", topic, "--execute")
    ran.failed(1, "has 1 members", "stop them first")
    member.close()


def test_one_move_is_asked_for() -> None:
    assert reset_target("earliest", None, None) == ResetTarget(OffsetMove.EARLIEST)
    assert reset_target("42", None, None) == ResetTarget(OffsetMove.OFFSET, 42)
    assert reset_target(None, "1700000000000", None) == ResetTarget(
        OffsetMove.TIME, 1_700_000_000_000
    )
    assert reset_target(None, None, -5) == ResetTarget(OffsetMove.SHIFT, -5)


def test_mistakes_are_said_in_a_line(run: Run, group: str) -> None:
    reset = ("groups", "reset-offsets", group)
    run(*reset).failed(2, "--to, --to-time and --shift-by")
    run(*reset, "--to", "latest", "--shift-by", "1").failed(2, "give one of")
    run(*reset, "--to", "start").failed(2, "--to 'start': expected earliest")
    run(*reset, "--to", "latest", "--topic", "nowhere").failed(1, "nowhere")
    run("groups", "reset-offsets", "nobody", "--to", "latest").failed(
        2, "name the topics with --topic"
    )
