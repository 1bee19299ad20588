from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.yaml_file import open_pipeline


def test_a_file_is_opened_with_overrides(tmp_path: Path) -> None:
    path = tmp_path / "land.yaml"
    path.write_text(templates.text("land"))
    assert open_pipeline(path).trigger == "10 seconds"
    pipeline = open_pipeline(path, ["trigger=once", "bootstrap=broker:1"])
    assert (pipeline.trigger, pipeline.bootstrap) == ("once", "broker:1")


def test_schema_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "{name: p, sources: {s: {topic: t, format: json, schema: s.ddl}},"
        " sinks: [{name: a, from: s, console: {}}]}"
    )
    with pytest.raises(UserError, match=r"there is no file .*s\.ddl"):
        open_pipeline(path)
    (tmp_path / "s.ddl").write_text("user STRING")
    assert open_pipeline(path).sources[0].format.schema == "user STRING"
