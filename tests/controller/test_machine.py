"""Whole stories through the real machine, as transcripts in `tests/scenarios/controller`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.controller.transcript import Actor, Block, parse, write

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios" / "controller").glob("*.txt"))


@pytest.mark.spec(
    "CTL-01", "CTL-17", "CTL-18", "CTL-32", "CTL-33", "CTL-34", "CTL-35", "CTL-36", "CTL-37",
    "CTL-41", "CTL-42", "CTL-44", "CTL-45", "CTL-46", "CTL-47", "CTL-48", "CTL-49", "CTL-50",
    "CTL-51", "CTL-52", "CTL-53", "CTL-54", "CTL-55", "CTL-56", "CTL-59", "CTL-60", "CTL-61",
    "CTL-63", "CTL-64", "CTL-65", "CTL-76", "CTL-78", "REP-71", "REP-72", "REP-73", "REP-74",
)  # fmt: skip
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_what_happens_leads_to_what_was_agreed(scenario: Path) -> None:
    heading, blocks = parse(scenario.read_text())
    actor = Actor()
    happened = [Block(block.command, actor.run(block.command)) for block in blocks]
    if os.environ.get("REWRITE"):
        scenario.write_text(write(heading, happened))
    assert happened == blocks


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 10
