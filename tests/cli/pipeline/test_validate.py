"""Without Spark; what Spark says of a file's SQL is in `test_run`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.spark.pipelines import templates
from tests.cli.ottla_program import Run


@pytest.mark.parametrize("name", templates.names())
def test_every_template_is_good(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "x.yaml").write_text(templates.text(name))
    ran = run("pipeline", "validate", tmp_path / "x.yaml", "--words-only")
    assert ran.code == 0
    assert "x.yaml: valid. Views: " in ran.out


def test_what_is_wrong_is_said_with_its_place(run: Run, tmp_path: Path) -> None:
    text = templates.text("land").replace("from: rows", "from: row")
    (tmp_path / "x.yaml").write_text(text)
    words = ("pipeline", "validate", tmp_path / "x.yaml", "--words-only")
    run(*words).failed(
        2, "sink landed: from: there is no view 'row'; expected one of records, rows"
    )
