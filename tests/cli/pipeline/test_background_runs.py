"""`status`, `stop` and `logs`, with a process that stands for a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ottla.model.clock import SystemClock
from ottla.spark.pipelines import background, templates
from tests.cli.ottla_program import Run

PROGRAM = "import signal; print('batch 1 of clean', flush=True); signal.pause()"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    text = templates.text("views") + f"checkpoint: {tmp_path / 'checkpoints'}\n"
    lines = [line for line in text.splitlines() if "checkpoint: ./" not in line]
    (tmp_path / "views.yaml").write_text("\n".join(lines))
    return tmp_path / "views.yaml"


def test_a_run_in_the_background_is_shown_and_stopped(run: Run, path: Path) -> None:
    checkpoint = path.parent / "checkpoints"
    background.start(str(checkpoint), [sys.executable, "-c", PROGRAM], SystemClock())
    batch = {"query": "clean", "batch": 7, "rows_in": 3, "rows_in_s": 0.75 / 9}
    (checkpoint / "progress.jsonl").write_text(json.dumps(batch) + '\n{"query": "cl')
    shown = run("pipeline", "status", path, "--json")
    assert shown.code == 0
    found = json.loads(shown.out)
    assert found["pipeline"][0]["state"] == "running"
    (query,) = found["queries"]
    assert (query["query"], query["batch"], query["rows_in_s"]) == ("clean", 7, 0.1)
    for option in ("--background", "--once"):
        run("pipeline", "run", path, option).failed(2, "already running")
    stopped = run("pipeline", "stop", path)
    assert "views stopped" in stopped.out
    assert run("pipeline", "status", path).code == 1
    assert run("pipeline", "logs", path, "--lines", "5").code == 0


def test_what_does_not_run_cannot_be_stopped(run: Run, path: Path) -> None:
    run("pipeline", "stop", path).failed(2, "views does not run")
    run("pipeline", "logs", path).failed(2, "was not started with ottla pipeline run --background")
    ran = run("pipeline", "status", path)
    assert ran.code == 1
    assert "stopped" in ran.out
