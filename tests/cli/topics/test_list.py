from __future__ import annotations

import pytest

from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-05")
def test_names_are_listed_a_line_each(run: Run, topic: str, group: str) -> None:
    names = run("topics", "list").out.splitlines()
    assert topic in names
    assert names == sorted(names)
    assert "__consumer_offsets" not in names
    assert "__consumer_offsets" in run("topics", "list", "--internal").out


def test_a_pattern_is_for_the_whole_name(run: Run, topic: str) -> None:
    assert run("topics", "list", topic, "--json").json == [topic]
    assert run("topics", "list", topic[1:]).out == ""
    run("topics", "list", "(").failed(2, "PATTERN '(': expected a regular expression")
