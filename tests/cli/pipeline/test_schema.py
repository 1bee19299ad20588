from __future__ import annotations

from tests.cli.ottla_program import Run


def test_the_schema_is_json_with_what_each_key_means(run: Run) -> None:
    schema = run("pipeline", "schema").json
    assert schema["title"] == "Ottla pipeline"
    assert schema["properties"]["trigger"]["description"].startswith("once, or the time")
    assert "tests" in run("pipeline", "schema", "--tests").json["properties"]
