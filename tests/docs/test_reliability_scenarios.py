"""The table of scenarios in docs/reliability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIOS = range(1, 31)
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| (.+) \|$", re.MULTILINE)


def rows() -> dict[int, str]:
    page = (ROOT / "docs/reliability.md").read_text()
    return {int(number): shown for number, shown in ROW.findall(page)}


def test_every_scenario_is_in_the_table() -> None:
    assert sorted(rows()) == list(SCENARIOS)


@pytest.mark.parametrize("number", SCENARIOS)
def test_a_scenario_is_shown_by_processes_where_the_table_says_so(number: int) -> None:
    shown = rows()[number]
    paths = re.findall(r"`(tests/[^`]+)`", shown)
    assert paths
    for path in paths:
        assert f"def test_scenario_{number:02}_" in (ROOT / path).read_text(), path
    simulated = any(
        f"def test_scenario_{number:02}_" in path.read_text()
        for path in (ROOT / "tests/sim/cluster").glob("test_*.py")
    )
    assert ("simulation" in shown) == simulated
