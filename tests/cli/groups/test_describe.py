from __future__ import annotations

import re

import pytest

from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.cli.terminal import on_a_terminal
from tests.client.admin.group_members import joined
from tests.raw_requests import Line, batch, produced


@pytest.mark.spec("MON-23", "TOOL-12")
def test_a_group_is_shown_with_its_lag(
    run: Run, topic: str, group: str, cli_broker: Broker
) -> None:
    with Line(cli_broker.bootstrap_servers) as line:
        produced(line, topic, batch("a", "b", "c"))
    shown = run("groups", "describe", group, "--json").json
    [row] = shown["groups"]
    assert (row["state"], row["members"], row["lag"]) == ("Empty", 0, 3)
    assert [
        (one["partition"], one["committed"], one["end"], one["lag"]) for one in shown["partitions"]
    ] == [(0, 0, 3, 3), (1, 0, 0, 0)]


@pytest.mark.spec("TOOL-12")
def test_members_are_shown_beside_what_they_read(run: Run, topic: str, cli_broker: Broker) -> None:
    member = joined(cli_broker, topic)
    shown = run("groups", "describe", topic, "--json").json
    assert shown["groups"][0]["state"] == "Stable"
    assert {row["client"] for row in shown["partitions"]} == {"reader"}
    assert {row["committed"] for row in shown["partitions"]} == {None}
    member.close()


def test_a_narrow_terminal_shows_the_lag(
    run: Run, topic: str, group: str, cli_broker: Broker
) -> None:
    """The environment names the broker, as `run` sets it."""
    with Line(cli_broker.bootstrap_servers) as line:
        produced(line, topic, batch(*map(str, range(12_345))))
    code, shown = on_a_terminal(["groups", "describe", group], "12345", "", columns=60)
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert max(map(len, plain.splitlines())) <= 60
    cells = [[cell.strip() for cell in re.split("[│┃]", line)] for line in plain.splitlines()]
    [head] = [row for row in cells if "state" in row]
    [row] = [row for row in cells if "Empty" in row]
    assert row[head.index("lag")] == "12345", plain
    assert ["", "lag", "12345", ""] in cells, plain  # of a partition: a line for each of its cells


def test_all_groups_are_shown_by_default_and_a_missing_one_is_named(run: Run, group: str) -> None:
    assert group in run("groups", "describe").out
    run("groups", "describe", "nobody").failed(1, "nobody")
    assert run("groups", "describe", "nobody").out == "", "no empty tables before the reason"
