from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.pipeline.load import opened
from ottla.model.errors import UserError
from ottla.spark.pipelines import templates


def test_a_file_is_opened_with_what_the_command_line_puts_over_it(tmp_path: Path) -> None:
    path = tmp_path / "land.yaml"
    path.write_text(templates.text("land"))
    assert opened(path, None).trigger == "10 seconds"
    made = opened(path, ["trigger=once", "bootstrap=broker:1"])
    assert (made.trigger, made.bootstrap) == ("once", "broker:1")


def test_schemas_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "{name: p, sources: {s: {topic: t, format: json, schema: s.ddl}},"
        " sinks: [{name: a, from: s, console: {}}]}"
    )
    with pytest.raises(UserError, match=r"there is no file .*s\.ddl"):
        opened(path, None)
    (tmp_path / "s.ddl").write_text("user STRING")
    assert opened(path, None).sources[0].format.schema == "user STRING"
