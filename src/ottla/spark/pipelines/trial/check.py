"""`ottla pipeline test`: a pipeline's steps on the records of a test, and what differs.

Owns: running tests on a local Spark, as batches, without a broker; the comparison of rows.
Never: starts a streaming query, or writes.

A view has the rows that it would have once all given records were read: windows and sessions are
complete. Rows are compared as a multiset, by the columns that the test names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.model.errors import UserError
from ottla.spark import rows
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.file_values import load, masked_errors
from ottla.spark.pipelines.sinks.records import topic_records
from ottla.spark.pipelines.spec import DatabaseSource, FileSource, Pipeline, Source, TopicTarget
from ottla.spark.pipelines.trial.fixtures import (
    FixtureRecord,
    PipelineTest,
    parse_tests,
    pipeline_path,
    test_path,
    to_json,
    without_registry,
)
from ottla.spark.pipelines.trial.sample import refused_rows
from ottla.spark.pipelines.variables import Masks, YamlValue
from ottla.spark.pipelines.views import Views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SETTINGS: Final = {"spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
MASTER: Final = "local[1]"
SHOWN_ROWS: Final = 10
DIGITS: Final = 9
"""Floating-point numbers are compared by so many significant digits."""


class PipelineTestFailed(AssertionError):
    """Tests of a pipeline failed; the message has the rows that are missing or unexpected."""


@dataclass(frozen=True)
class Outcome:
    """What became of one test; no differences: it passed."""

    name: str
    differences: tuple[str, ...] = ()


def check(
    path: Path | str,
    *,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    spark: SparkSession | None = None,
) -> None:
    """Run the tests of a pipeline file; `PipelineTestFailed` says what differs.

        def test_views() -> None:
            pipelines.check("views.yaml")

    The tests stand beside it, in `views.test.yaml`. Without `spark` a local session is started, or
    the one of this process is used; it is left running.
    """
    outcomes = list(run_tests(Path(path), overrides, spark, profile))
    failed = [outcome for outcome in outcomes if outcome.differences]
    if failed:
        lines = [
            f"{outcome.name}: {difference}"
            for outcome in failed
            for difference in outcome.differences
        ]
        raise PipelineTestFailed("\n".join((f"{len(failed)} of {len(outcomes)} failed", *lines)))


def run_tests(
    path: Path,
    overrides: Sequence[str] = (),
    spark: SparkSession | None = None,
    profile: str | None = None,
) -> Iterator[Outcome]:
    """Each test of a file, in order; UserError where a file is wrong."""
    pipeline = without_registry(yaml_file.open_pipeline(pipeline_path(path), overrides, profile))
    of_tests = test_path(path)
    values, of_values, unresolved = load(of_tests)
    masks = Masks(pipeline.secrets, pipeline.variables).joined(of_values)
    try:
        with masked_errors(masks):
            if unresolved:
                raise UserError("\n".join(unresolved.values()))
            tests = parse_tests(values, pipeline, of_tests.parent)
    except UserError as mistake:
        place = "" if str(of_tests) in str(mistake) else f"{of_tests}: "
        raise UserError(f"{place}{mistake}") from None
    return (_masked_test(_session(pipeline, spark), pipeline, test, masks) for test in tests)


def _masked_test(
    spark: SparkSession, pipeline: Pipeline, test: PipelineTest, masks: Masks
) -> Outcome:
    """Rows may have what no one may read: fixtures are written by people."""
    with masked_errors(masks):
        outcome = run_test(spark, pipeline, test)
    return replace(outcome, differences=tuple(map(masks.mask, outcome.differences)))


def run_test(spark: SparkSession, pipeline: Pipeline, test: PipelineTest) -> Outcome:
    def read(source: Source | FileSource | DatabaseSource) -> DataFrame:
        return fixture_frame(spark, test.given.get(source.name, []))

    def read_files(source: FileSource | DatabaseSource) -> DataFrame:
        if not source.schema:
            raise UserError(f"sources.{source.name}.schema: missing; tests need it")
        return file_rows(read(source), source)

    views = Views(spark, pipeline, read, read_files)
    judged = {letter.view: letter.judged for letter in views.dead_letters}
    sinks = {sink.name: sink for sink in pipeline.sinks}
    problems: list[str] = []
    for view, expected in test.expect.items():
        problems += differences(views.frames[view], expected, f"view {view}")
    for view, expected in test.dead_letters.items():
        if view not in judged:
            raise UserError(f"test {test.name}: dead_letters: {view} has no dead_letter")
        problems += differences(refused_rows(judged[view]), expected, f"dead letters of {view}")
    for name, expected in test.records.items():
        sink = sinks[name]
        if not isinstance(sink.target, TopicTarget):
            raise UserError(f"test {test.name}: records: the sink {name} writes to no topic")
        records = _as_text(topic_records(sink, views.frames[sink.source]))
        problems += differences(records, expected, f"records of {name}")
    return Outcome(test.name, tuple(problems))


def fixture_frame(spark: SparkSession, records: Sequence[FixtureRecord]) -> DataFrame:
    """Records as the source gives them, with offsets in their order."""
    offsets: Counter[tuple[str, int]] = Counter()
    made = []
    for record in records:
        place = (record.topic, record.partition)
        headers = [(name, text.encode()) for name, text in record.headers.items()] or None
        made.append(
            (record.key, record.value, *place, offsets[place], record.timestamp, 0, headers)
        )
        offsets[place] += 1
    return spark.createDataFrame(made, rows.schema((*rows.COLUMNS, rows.HEADERS)))


def file_rows(records: DataFrame, source: FileSource | DatabaseSource) -> DataFrame:
    """Rows of a file, given as JSON."""
    from pyspark.sql import functions as F

    text = F.col("value").cast("string")
    return records.select(F.from_json(text, source.schema).alias("row")).select("row.*")


def differences(
    frame: DataFrame, expected: Sequence[Mapping[str, YamlValue]], where: str
) -> list[str]:
    """The rows that are missing and those that nobody expected, a line each."""
    columns = list(dict.fromkeys(name for row in expected for name in row))
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        return [f"{where}: no column {', '.join(unknown)}; it has {', '.join(frame.columns)}"]
    shown = frame.select(*columns) if columns else frame
    actual = Counter(map(_comparable_row, shown.collect()))
    wanted = Counter(map(_comparable_row, _typed_rows(shown, expected)))
    missing, unexpected = wanted - actual, actual - wanted
    return [
        *_lines(f"{where}: missing", missing, shown.columns),
        *_lines(f"{where}: unexpected", unexpected, shown.columns),
    ]


def _typed_rows(shown: DataFrame, expected: Sequence[Mapping[str, YamlValue]]) -> list[Row]:
    """Expected rows with the types of the view: times, decimals and nested rows included."""
    from pyspark.sql import functions as F

    if not expected:
        return []
    spark = shown.sparkSession
    texts = spark.createDataFrame([(to_json(row),) for row in expected], "row STRING")
    return [*texts.select(F.from_json("row", shown.schema).alias("row")).select("row.*").collect()]


def _as_text(records: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return records.select(
        *(
            F.col(name).cast("string").alias(name) if name in ("key", "value") else F.col(name)
            for name in records.columns
        )
    )


def _comparable_row(row: Row) -> tuple[object, ...]:
    return tuple(map(_comparable, row))


def _comparable(value: object) -> object:
    """Equal for values that a test takes as equal, and hashable."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return tuple(sorted((name, _comparable(inner)) for name, inner in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    return bytes(value) if isinstance(value, bytearray) else value


def _lines(what: str, found: Counter[tuple[object, ...]], columns: Sequence[str]) -> Iterator[str]:
    for number, row in enumerate(found.elements()):
        if number == SHOWN_ROWS:
            yield f"{what}: and {found.total() - SHOWN_ROWS} more"
            return
        yield f"{what}: " + ", ".join(
            f"{name}={value}" for name, value in zip(columns, row, strict=True)
        )


def _session(pipeline: Pipeline, spark: SparkSession | None) -> SparkSession:
    from pyspark.sql import SparkSession

    from ottla.spark.pipelines.session import session

    existing = spark or SparkSession.getActiveSession()
    if existing is not None:
        return existing
    settings = {**pipeline.spark, **SETTINGS}
    return session(f"{pipeline.name}-test", MASTER, settings, secrets=pipeline.secrets)
