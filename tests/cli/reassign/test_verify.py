from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.reassign.moves import as_json
from ottla.model.ids import TopicPartition
from tests.cli.ottla_program import Run


@pytest.mark.spec("TOOL-16")
def test_moves_are_done_or_not(run: Run, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(as_json({TopicPartition(topic, 0): [0]}))
    [row] = run("reassign", "verify", plan, "--json").json
    assert (row["state"], row["wanted"], row["now"]) == ("done", [0], [0])
    plan.write_text(as_json({TopicPartition(topic, 0): [7]}))
    ran = run("reassign", "verify", plan)
    assert ran.code == 1
    assert "elsewhere" in ran.out


def test_mistakes_are_said_in_a_line(run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(as_json({TopicPartition("nowhere", 0): [0]}))
    run("reassign", "verify", plan).failed(1, "nowhere")
    plan.write_text("[]")
    run("reassign", "verify", plan).failed(2, "expected JSON")
