from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.reassign.moves import as_json
from ottla.model.ids import TopicPartition
from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-16")
def test_the_moves_of_a_plan_are_begun(run: Run, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(as_json({TopicPartition(topic, 0): [0]}))
    assert run("reassign", "execute", plan).out == "begun: 1 of 1\n"
    waited = run("reassign", "execute", plan, "--wait", 30).out
    assert waited == "begun: 1 of 1\nmoved: 1 of 1\n"


def test_moves_that_are_done_cannot_be_cancelled(run: Run, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(as_json({TopicPartition(topic, 0): [0]}))
    ran = run("reassign", "cancel", plan)
    assert ran.out == "cancelled: 0 of 1\n"
    ran.failed(1, f"{topic}-0")


def test_mistakes_are_said_in_a_line(run: Run, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    run("reassign", "execute", plan).failed(2, "No such file")
    plan.write_text(as_json({TopicPartition(topic, 0): [7], TopicPartition("nowhere", 0): [0]}))
    run("reassign", "execute", plan).failed(1, f"{topic}-0", "nowhere-0")
