from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.clock import WallMs
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.pipelines.running_queries import History
from tests.cli.ottla_program import Run


@pytest.fixture
def views(tmp_path: Path) -> Path:
    path = tmp_path / "views.yaml"
    path.write_text(templates.text("views") + f"\ncheckpoint: {tmp_path / 'checkpoints'}\n")
    return path


def test_a_run_is_drawn(run: Run, views: Path, tmp_path: Path) -> None:
    History(str(tmp_path / "checkpoints")).on_batch(
        QueryProgress("clean", WallMs(0), 1, 2, 3.0, 4, 5, 6, 7, 8.0)
    )
    made = run("pipeline", "report", views, "--to", tmp_path / "views.svg")
    assert made.code == 0
    assert "views.svg: throughput and lag of views" in made.out
    assert (tmp_path / "views.svg").read_text().startswith("<?xml")
    run("pipeline", "report", views, "--to", tmp_path / "views.gif").failed(2, ".png or .svg")


def test_what_there_is_no_history_of_is_said_in_one_line(run: Run, views: Path) -> None:
    run("pipeline", "report", views).failed(2, "there is no history yet")
    elsewhere = ("--set", "checkpoint=s3://bucket/x")
    run("pipeline", "report", views, *elsewhere).failed(2, "checkpoint: s3://bucket/x: a report")


def test_a_folder_that_is_not_there_is_said_before_anything_is_drawn(
    run: Run, views: Path, tmp_path: Path
) -> None:
    target = tmp_path / "none" / "views.png"
    ran = run("pipeline", "report", views, "--to", target)
    ran.failed(2, f"--to {target}: there is no folder {tmp_path / 'none'}")
