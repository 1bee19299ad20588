"""`pipeline test`: fixtures in, expected rows out, without a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from ottla.model.errors import UserError
from ottla.spark import pipelines
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.trial.check import run_tests
from ottla.spark.pipelines.trial.fixtures import parse_tests

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/*.test.yaml"))
PIPELINE = """
name: test
sources:
  events: {topic: events, format: json, schema: "user STRING, n DOUBLE, at TIMESTAMP"}
steps:
  - {name: sums, sql: "SELECT user, sum(n) AS n, max(at) AS at FROM events GROUP BY user"}
  - {name: firsts, from: events, deduplicate: [user], within: {column: at, delay: 1 minute}}
sinks:
  - {name: out, from: sums, topic: {name: sums, key: user}}
  - {name: shown, from: sums, console: {}}
"""


@pytest.mark.spec("APP-06")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_tests_of_the_examples_pass(spark: SparkSession, path: Path) -> None:
    pipelines.check(path, spark=spark)


def file(folder: Path, tests: str) -> Path:
    (folder / "p.yaml").write_text(PIPELINE)
    (folder / "p.test.yaml").write_text(tests)
    return folder / "p.yaml"


def test_rows_are_compared_by_the_named_columns_in_any_order_with_the_views_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = file(
        tmp_path,
        """
        tests:
          - name: sums
            given:
              events:
                - {user: a, n: 0.1, at: 2026-05-01T12:00:00Z}
                - {user: a, n: 0.2, at: 2026-05-01T12:00:01Z, _key: k}
                - {_value: '{"user": "b", "n": 1}'}
            expect:
              sums: [{user: b, n: 1}, {user: a, n: 0.3, at: 2026-05-01T12:00:01Z}]
              firsts: [{user: a}, {user: b}]
              events: [{n: 0.1}, {n: 0.2}, {n: 1}]
        """,
    )
    pipelines.check(path, spark=spark)


def test_what_differs_is_said_row_by_row(spark: SparkSession, tmp_path: Path) -> None:
    path = file(
        tmp_path,
        """
        tests:
          - {name: good, given: {events: []}, expect: {sums: []}}
          - name: bad
            given: {events: [{user: a, n: 1}]}
            expect: {sums: [{user: a, n: 2}], events: [{m: 1}]}
        """,
    )
    good, bad = run_tests(path, spark=spark)
    assert good.differences == ()
    missing, unexpected, unknown = bad.differences
    assert missing == "view sums: missing: user=a, n=2.0"
    assert unexpected == "view sums: unexpected: user=a, n=1.0"
    assert unknown.startswith("view events: no column m; it has _key")
    with pytest.raises(pipelines.PipelineTestFailed, match=r"1 of 2 failed\nbad: view sums: miss"):
        pipelines.check(path, spark=spark)


def test_what_differs_is_said_without_secrets(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAME", "hunter2")
    monkeypatch.setenv("OTHER", "hunter3")
    path = file(
        tmp_path,
        """
        tests:
          - name: bad
            given: {events: [{user: "${env:NAME}", n: 1}]}
            expect: {events: [{user: "${secret:env:OTHER}"}]}
        """,
    )
    (bad,) = run_tests(path, spark=spark)
    assert bad.differences == (
        "view events: missing: user=***",
        "view events: unexpected: user=${env:NAME}",
    )
    path = file(tmp_path, 'tests: [{name: bad, given: {events: ["${env:NO}"]}, expect: {}}]')
    with pytest.raises(UserError, match=r"p\.test\.yaml: tests\[0\]\.given.*NO is not set"):
        run_tests(path, spark=spark)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ({"given": {"x": []}}, r"tests\[0\]\.given\.x: no such source; expected one of events"),
        ({"given": {}}, r"tests\[0\]\.expect: missing"),
        ({"given": {}, "expect": {"y": []}}, r"expect\.y: no such view; expected one of events, s"),
        ({"given": {}, "expect": {"sums": [1]}}, r"expect\.sums: expected a list of rows"),
        ({"given": {"events": "no.jsonl"}}, r"given\.events: cannot read .*no\.jsonl"),
        (
            {"given": {"events": [{"_value": 1, "n": 2}]}},
            r"events\[0\]: .*either _value or columns",
        ),
        ({"given": {}, "expected": {}, "expect": {"sums": []}}, "expected: unknown key; did you m"),
    ],
)
def test_mistakes_in_a_file_of_tests_are_said_with_their_place(
    test: dict[str, Any], said: str
) -> None:
    pipeline = yaml_file.parse(yaml.safe_load(PIPELINE))
    with pytest.raises(UserError, match=said):
        parse_tests({"tests": [{"name": "t", **test}]}, pipeline, Path())


def test_a_pipeline_without_tests_says_which_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    with pytest.raises(UserError, match=r"p\.test\.yaml: No such file"):
        list(run_tests(tmp_path / "p.yaml"))
