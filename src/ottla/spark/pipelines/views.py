"""Sources and steps as Spark's views, in the order of the file.

Owns: the views of one pipeline, and the refused rows on the way. Never: starts a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.model.errors import UserError
from ottla.spark.pipelines import file_sources, python_steps
from ottla.spark.pipelines.decoding.formats import ORIGIN, REASON, decode_records, good
from ottla.spark.pipelines.spec import (
    DatabaseSource,
    DeduplicateStep,
    FileSource,
    Pipeline,
    PythonStep,
    RejectStep,
    Source,
    SqlStep,
    Step,
    Watermark,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WATERMARK: Final = "spark.watermarkDelayMs"
"""What Spark writes beside a column that has one."""
NOT_FOUND: Final = "[TABLE_OR_VIEW_NOT_FOUND]"
"""How Spark says that there is no such view."""
_HEADERS: Final = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
FUNCTIONS: Final = (
    f"""header(headers {_HEADERS}, name STRING) RETURNS STRING
    RETURN CAST(try_element_at(filter(headers, h -> h.key = name), -1).value AS STRING)""",
    f"""with_header(headers {_HEADERS}, name STRING, text STRING) RETURNS {_HEADERS}
    RETURN concat(filter(coalesce(headers, array()), h -> h.key <> name),
      array(named_struct('key', name, 'value', CAST(text AS BINARY))))""",
    f"""with_headers(headers {_HEADERS}, more MAP<STRING, STRING>) RETURNS {_HEADERS}
    RETURN concat(
      filter(coalesce(headers, array()), h -> NOT array_contains(map_keys(more), h.key)),
      transform(map_entries(more),
        e -> named_struct('key', e.key, 'value', CAST(e.value AS BINARY))))""",
    f"""without_header(headers {_HEADERS}, name STRING) RETURNS {_HEADERS}
    RETURN filter(headers, h -> h.key <> name)""",
)
"""For a pipeline's SQL: `header(_headers, 'ttl')` is the last header of that name, or null.

Spark does not let one of these be an argument of another; `with_headers` sets several at once."""

Read: TypeAlias = "Callable[[Source], DataFrame]"
"""How a source's records are got: from a topic, or in a test from elsewhere."""

ReadFiles: TypeAlias = "Callable[[FileSource | DatabaseSource], DataFrame]"


class DeadLetter(NamedTuple):
    """Rows refused by one source or step, and the topic they go to."""

    view: str
    topic: str
    bootstrap: str
    judged: DataFrame
    """The rows of the view, and those that are refused, with the reason."""

    @property
    def name(self) -> str:
        return f"{self.view}_dead_letter"


@dataclass
class ViewMistakes:
    """What is wrong with views, and which are left out; one that is made of those is, too."""

    left_out: set[str]
    lines: list[str] = field(default_factory=list)

    def add(self, name: str, line: str) -> None:
        if not (NOT_FOUND in line and any(f"`{view}`" in line for view in self.left_out)):
            self.lines.append(line)
        self.left_out.add(name)


class Views:
    """What a pipeline's names stand for."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        read: Read | None = None,
        read_files: ReadFiles | None = None,
        *,
        batch: Mapping[str, DataFrame] | None = None,
        mistakes: ViewMistakes | None = None,
    ) -> None:
        """`batch`: the rows of sources in one batch of a query, as `judged` has them; its session
        has the functions already. With `mistakes` they are collected there, and the views that have
        one are left out; otherwise the first is raised."""
        self._spark = spark
        self._pipeline = pipeline
        self._read = read or self._stream
        self._read_files = read_files or self._file_frame
        self.frames: dict[str, DataFrame] = {}
        self.judged: dict[str, DataFrame] = dict(batch or {})
        """The rows of each source: of a topic with those that are refused, and the reason."""
        self.dead_letters: list[DeadLetter] = []
        self.table_use = file_sources.TableUse()
        self._mistakes = mistakes
        for function in FUNCTIONS if batch is None else ():
            spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {function}")
        for source in pipeline.sources:
            with self._collected(source.name):
                self._add_source(source)
        for files in pipeline.files:
            with self._collected(files.name):
                self._add_files(files, in_batch=batch is not None)
        for step in pipeline.steps:
            with self._collected(step.name):
                self._add(step.name, self._step(step))

    @contextmanager
    def _collected(self, name: str) -> Iterator[None]:
        try:
            yield
        except UserError as mistake:
            if self._mistakes is None:
                raise
            self._mistakes.add(name, str(mistake))

    def _add_files(self, files: FileSource | DatabaseSource, *, in_batch: bool) -> None:
        where = f"sources.{files.name}"
        if files.name not in self.judged:
            with _analysed(where):
                self.judged[files.name] = self._read_files(files)
        frame = _late(self.judged[files.name], files.watermark, where)
        if in_batch and files.is_table:
            self.frames[files.name] = frame  # the batch's session has this view
        else:
            self._add(files.name, frame)

    def _add_source(self, source: Source) -> None:
        where = f"sources.{source.name}"
        frame = self.judged.get(source.name)
        if frame is None:
            frame = decode_records(self._read(source), source.format, where, source.key)
            self.judged[source.name] = frame
        bootstrap = source.options["kafka.bootstrap.servers"]
        self._refuse(source.name, source.dead_letter, frame, bootstrap)
        self._add(source.name, _late(good(frame), source.watermark, where))

    def _add(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)
        self.frames[name] = frame

    def _refuse(self, name: str, topic: str | None, frame: DataFrame, bootstrap: str) -> None:
        if topic is not None:
            self.dead_letters.append(DeadLetter(name, topic, bootstrap, frame))

    def _step(self, step: Step) -> DataFrame:
        match step:
            case SqlStep():
                return _late(self._sql(step), step.watermark, f"step {step.name}")
            case RejectStep():
                return self._reject(step)
            case DeduplicateStep():
                return self._deduplicate(step)
            case PythonStep():
                return python_steps.call(step, [self._frame(name) for name in step.sources])

    def _frame(self, name: str) -> DataFrame:
        if self._mistakes is not None and name in self._mistakes.left_out:
            raise UserError(f"{NOT_FOUND} `{name}`")
        return self.frames[name]

    def _sql(self, step: SqlStep) -> DataFrame:
        with _analysed(f"step {step.name}: sql"):
            return self._spark.sql(step.sql)

    def _reject(self, step: RejectStep) -> DataFrame:
        from pyspark.sql import functions as F

        frame = self._frame(step.source)
        lost = [name for name in ORIGIN if name not in frame.columns]
        if lost:
            raise UserError(
                f"step {step.name}: {step.source} lacks {', '.join(lost)}, required for dead "
                "letters; reject rows before a join or aggregation, or select these columns"
            )
        with _analysed(f"step {step.name}: reject"):
            reasons = [F.when(F.expr(test), F.lit(why)) for why, test in step.reasons.items()]
            judged = frame.withColumn(REASON, F.coalesce(*reasons))
        self._refuse(step.name, step.dead_letter, judged, self._pipeline.bootstrap)
        return good(judged)

    def _deduplicate(self, step: DeduplicateStep) -> DataFrame:
        with _analysed(f"step {step.name}: deduplicate"):
            frame, keys = self._frame(step.source), list(step.keys)
            if not frame.isStreaming:  # a sample or a fixture: all rows are one batch
                return frame.dropDuplicates(keys)
            if step.within is None and _watermark_column(frame) is None:
                return frame.dropDuplicates(keys)
            late = _late(frame, step.within, f"step {step.name}")
            return late.dropDuplicatesWithinWatermark(keys)

    def _file_frame(self, source: FileSource | DatabaseSource) -> DataFrame:
        return file_sources.frame(self._spark, source)

    def _stream(self, source: Source) -> DataFrame:
        return self._spark.readStream.format("ottla").options(**source.options).load()


def _watermark_column(frame: DataFrame) -> str | None:
    """The column that a watermark is on already."""
    return next((one.name for one in frame.schema if WATERMARK in one.metadata), None)


def _late(frame: DataFrame, watermark: Watermark | None, where: str) -> DataFrame:
    if watermark is None:
        return frame
    has = _watermark_column(frame)
    if has is not None:
        raise UserError(f"{where}: {has} already has a watermark; only one is allowed")
    with _analysed(f"{where}: watermark"):
        return frame.withWatermark(watermark.column, watermark.delay)


class _analysed:
    """Spark's complaint about a plan, as one line that says which part of the file it is about."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from pyspark.errors import PySparkException

        if isinstance(error, PySparkException):
            first = str(error).strip().splitlines()[0]
            raise UserError(f"{self._where}: {first}") from None
