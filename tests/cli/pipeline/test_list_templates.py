from __future__ import annotations

from ottla.spark.pipelines import templates
from tests.cli.ottla_program import Run


def test_every_template_is_listed_with_what_it_is_for(run: Run) -> None:
    rows = run("pipeline", "list-templates", "--json").json
    assert [row["template"] for row in rows] == templates.names()
    assert all(row["what_for"] == templates.purpose(row["template"]) for row in rows)
