from __future__ import annotations

import pytest

from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-12")
def test_groups_are_listed_with_their_state(run: Run, group: str) -> None:
    rows = {row["group"]: row for row in run("groups", "list", "--json").json}
    assert (rows[group]["state"], rows[group]["type"]) == ("Empty", "classic")
    assert group not in run("groups", "list", "--state", "Stable").out
    assert run("groups", "list", "--state", "Empty").code == 0


def test_a_state_that_does_not_exist_has_no_groups(run: Run, group: str) -> None:
    assert run("groups", "list", "--state", "Sleeping", "--json").json == []
    run("groups", "list", "extra").failed(2, "extra")
