from __future__ import annotations

from pathlib import Path

from ottla.spark.pipelines import templates
from tests.cli.ottla_program import Run


def test_a_template_becomes_a_file_that_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    made = run("pipeline", "new", "land", path)
    assert made.code == 0
    assert f"ottla pipeline run {path}" in made.out
    assert path.read_text() == templates.text("land")
    run("pipeline", "new", "views", path).failed(2, "mine.yaml already exists")
    assert path.read_text() == templates.text("land")


def test_what_cannot_be_written_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    run("pipeline", "new", "lnad", tmp_path / "x.yaml").failed(2, "did you mean land?")
    run("pipeline", "new", "land", tmp_path / "no" / "x.yaml").failed(2, "No such file")
    assert not list(tmp_path.iterdir())
