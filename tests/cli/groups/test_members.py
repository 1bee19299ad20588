from __future__ import annotations

import pytest

import ottla
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.client.admin.group_members import joined


@pytest.mark.spec("TOOL-12")
def test_members_are_shown_and_put_out(
    run: Run, admin: ottla.Admin, topic: str, cli_broker: Broker
) -> None:
    member = joined(cli_broker, topic)
    [row] = run("groups", "members", topic, "--json").json
    assert (row["client"], row["partitions"]) == ("reader", [f"{topic}-0", f"{topic}-1"])
    run("groups", "members", topic, "--remove", "nobody").failed(2, "has no such member")
    assert run("groups", "members", topic, "--remove", row["member"]).out == "removed 1 of 1\n"
    assert admin.describe_group(topic).members == ()
    member.close()


def test_everybody_is_put_out_and_nobody_is_fine(run: Run, group: str) -> None:
    assert run("groups", "members", group, "--remove-all").out == "removed 0 of 0\n"
    run("groups", "members", "nobody").failed(1, "nobody")
