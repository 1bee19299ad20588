"""Steps that are functions of a Python file, on rows that are all there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.spec import Source
from ottla.spark.pipelines.views import Views
from tests.spark.pipelines.source_rows import records

STEPS = """
from dataclasses import dataclass

from pyspark.sql import functions as F

import helpers
from helpers import doubled


@dataclass
class Rule:
    least: int


def named(events, least=0):
    return events.where(F.col("n") >= Rule(least).least)


def sums(events, others):
    def add(rows):
        return doubled(rows.assign(n=rows["n"] + helpers.ONE))

    joined = events.select("user", "n").unionByName(others.select("user", "n"))
    return joined.groupBy("user").applyInPandas(add, "user STRING, n INT")


def nothing(events):
    events.where("n > 1")


def broken(events):
    return events.where("m > 1")


LIMIT = 3
"""
HELPERS = """
ONE = 1


def doubled(rows):
    return rows.assign(n=rows["n"] * 2)
"""


def file(folder: Path, *steps: str) -> dict[str, object]:
    (folder / "steps.py").write_text(STEPS)
    (folder / "helpers.py").write_text(HELPERS)
    values: dict[str, object] = yaml.safe_load(f"""
        name: test
        sources: {{events: {{topic: events, format: json, schema: "user STRING, n INT"}}}}
        steps: [{", ".join(steps)}]
        sinks: [{{name: out, from: events, console: {{}}}}]
    """)
    return values


def views(spark: SparkSession, folder: Path, *steps: str) -> Views:
    rows = [{"user": "a", "n": 1}, {"user": "b", "n": 5}]

    def read(_: Source) -> DataFrame:
        return records(spark, *(json.dumps(row).encode() for row in rows))

    return Views(spark, yaml_file.parse(file(folder, *steps), folder), read)


@pytest.mark.spec("APP-06")
def test_a_function_gets_views_and_arguments_and_makes_a_view(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = views(
        spark,
        tmp_path,
        "{name: many, from: events, python: 'steps.py:named', arguments: {least: 2}}",
        "{name: ordered, sql: SELECT user FROM many}",
    )
    assert [row.user for row in made.frames["ordered"].collect()] == ["b"]


@pytest.mark.spec("APP-06")
def test_workers_run_code_of_the_file_and_of_modules_beside_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The workers are not told of the folder."""
    made = views(
        spark, tmp_path, "{name: sums, from: [events, events], python: 'steps.py:sums'}"
    ).frames["sums"]
    (tmp_path / "helpers.py").unlink()
    rows = sorted((row.user, row.n) for row in made.collect())
    assert rows == [("a", 4), ("a", 4), ("b", 12), ("b", 12)]


def test_two_folders_may_have_files_of_the_same_name(spark: SparkSession, tmp_path: Path) -> None:
    step = "{name: many, from: events, python: 'steps.py:named'}"
    views(spark, tmp_path, step)
    other = tmp_path / "other"
    other.mkdir()
    values = file(other, step)
    (other / "helpers.py").write_text(HELPERS + "OTHER = 1\n")
    (other / "steps.py").write_text(STEPS.replace("import doubled", "import doubled, OTHER"))
    pipeline = yaml_file.parse(values, other)
    read = records(spark, b'{"user": "a", "n": 1}')
    assert Views(spark, pipeline, lambda _: read).frames["many"].count() == 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            "name",
            r"steps\.py:name: no such function; did you mean named\? \(functions of .*nothing",
        ),
        ("LIMIT", r"steps\.py:LIMIT: int; expected a function"),
        (
            "nothing",
            r"steps\.py:nothing: returned NoneType \(is a return missing\?\); expected a D",
        ),
        ("sums", r"steps\.py:sums\(events, others\): missing a required argument: 'others'; the s"),
        ("broken", r"steps\.py:broken, line 32: AnalysisException: .*`m`"),
    ],
)
def test_a_step_that_fails_says_file_function_and_line(
    spark: SparkSession, tmp_path: Path, function: str, said: str
) -> None:
    with pytest.raises(UserError, match=f"^step x: python: {said}"):
        views(spark, tmp_path, f"{{name: x, from: events, python: 'steps.py:{function}'}}")


def test_a_file_that_cannot_be_imported_says_the_line(spark: SparkSession, tmp_path: Path) -> None:
    values = file(tmp_path, "{name: x, from: events, python: 'steps.py:named'}")
    (tmp_path / "steps.py").write_text("\nimport no_such_module\n")
    pipeline = yaml_file.parse(values, tmp_path)
    with pytest.raises(UserError, match=r"steps\.py:named, line 2: ModuleNotFoundError: No module"):
        Views(spark, pipeline, lambda _: records(spark))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("python: clean, from: events", r"steps\[0\]\.python: expected a file and a function"),
        ("python: 'no.py:f', from: events", r"steps\[0\]\.python: .*no\.py: No such file"),
        ("python: 'bad.py:f', from: events", r"steps\[0\]\.python: .*bad\.py, line 2: "),
        ("python: 'steps.py:named'", r"steps\[0\]\.from: missing"),
        ("python: 'steps.py:named', from: [events, x]", "step x: from: there is no view 'x'"),
        (
            "python: 'steps.py:named', from: events, arguments: [1]",
            r"steps\[0\]\.arguments: expected a mapping",
        ),
    ],
)
def test_mistakes_are_found_before_anything_runs(tmp_path: Path, step: str, said: str) -> None:
    (tmp_path / "bad.py").write_text("\ndef f(:\n")
    with pytest.raises(UserError, match=said):
        yaml_file.parse(file(tmp_path, f"{{name: x, {step}}}"), tmp_path)
