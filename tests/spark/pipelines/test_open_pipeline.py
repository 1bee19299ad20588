from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.file_values import override
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


def test_items_of_lists_are_overridden_by_number_or_name() -> None:
    values: dict[str, Any] = {
        "sinks": [{"name": "a", "mode": "append"}, {"name": "b", "delta": {"upsert_by": ["k"]}}]
    }
    for setting in ("sinks.0.mode=update", "sinks.b.delta.upsert_by.0=id", "sinks.1.from=x"):
        override(values, setting)
    assert values["sinks"] == [
        {"name": "a", "mode": "update"},
        {"name": "b", "delta": {"upsert_by": ["id"]}, "from": "x"},
    ]
    with pytest.raises(UserError, match="no item c; expected 0 to 1 or one of a, b"):
        override(values, "sinks.c.mode=update")
    with pytest.raises(UserError, match="mode is not a mapping"):
        override(values, "sinks.a.mode.x=1")
