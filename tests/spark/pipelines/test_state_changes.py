"""What is said of a query's state when the file has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.checkpoint_owner import Checkpoints, claim
from ottla.spark.pipelines.sinks.query_layout import layouts, seems_stateless
from ottla.spark.pipelines.sinks.state_changes import StateSteps, change, state_steps
from ottla.spark.pipelines.trial.read_plan import SourceRange, query_plans

FILE = """
name: test
sources: {views: {topic: t, format: json, schema: "user STRING, at TIMESTAMP"}}
steps:
  - {name: known, sql: SELECT * FROM views WHERE user IS NOT NULL}
  - {name: once, from: known, deduplicate: [user, at]}
  - {name: sums, sql: "SELECT user, count(*) AS n FROM once GROUP BY user"}
sinks:
  - {name: out, from: sums, topic: out, mode: update}
"""


def steps(*changes: tuple[str, str]) -> StateSteps:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    pipeline = yaml_file.parse(yaml.safe_load(text))
    (layout,) = layouts(pipeline, seems_stateless(pipeline), {}, lambda _: False)
    return state_steps(pipeline, layout)


def test_steps_with_state_are_told_from_those_without() -> None:
    assert list(steps()) == ["once", "sums"]


@pytest.mark.parametrize(
    "harmless",
    [
        ("user IS NOT NULL", "user <> 'robot'"),
        ("count(*) AS n FROM", "count(*)   AS n\\n FROM"),
        ("topic: out, mode", "topic: other, mode"),
    ],
)
def test_filters_spaces_and_sinks_may_change(harmless: tuple[str, str]) -> None:
    assert change(steps(), steps(harmless)) is None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("[user, at]", "[user]")], "once has other keys: Spark cannot keep the state"),
        ([("count(*) AS n", "max(at) AS n")], "sums changed: Spark keeps the state if keys"),
        ([("FROM once", "FROM known")], "its steps with state were once, sums, and are sums"),
        ([("from: sums", "from: known")], "keeps no state any more (once, sums): begin with"),
    ],
)
def test_what_spark_can_keep_is_said(changes: list[tuple[str, str]], told: str) -> None:
    assert (change(steps(), steps(*changes)) or "").startswith(told)


def test_a_plan_says_it_before_anything_runs(tmp_path: Path) -> None:
    pipeline = yaml_file.parse({**yaml.safe_load(FILE), "checkpoint": str(tmp_path)})
    claim(str(tmp_path), "test")
    checkpoints = Checkpoints(str(tmp_path))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metadata").write_text("{}")
    ranges = {"views": SourceRange({}, {}, {})}
    assert query_plans(pipeline, ranges)[0].change is None, "what it was is not known"
    checkpoints.record("test", state={"out": {"once": "deduplicate user"}})
    assert "its steps with state were once" in (query_plans(pipeline, ranges)[0].change or "")
    assert checkpoints.shared_queries() == {}
