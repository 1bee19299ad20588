"""`ottla pipeline try`: a sample of the topics' records through the steps; nothing is written.

Owns: which records are the sample (the last ones of each partition), and the rows that are shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.clock import Clock
from ottla.spark.offsets import to_json
from ottla.spark.pipelines import file_sources
from ottla.spark.pipelines.decoding.formats import REASON, own_columns
from ottla.spark.pipelines.spec import DatabaseSource, FileSource, Pipeline, Source
from ottla.spark.pipelines.trial.read_plan import SourceRange, source_range
from ottla.spark.pipelines.views import Views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OF_STREAMS: Final = (
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "ottla.delay",
    "kafka.group.id",
)
"""Options of a source that are not used for a sample, or are set by it."""


class ViewRows(NamedTuple):
    """Some rows of one view, or of its dead letters."""

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    total: int
    """How many rows there are."""


def try_pipeline(
    spark: SparkSession, pipeline: Pipeline, clock: Clock, *, records: int, rows: int
) -> Iterator[ViewRows]:
    """The views of a pipeline over the last `records` records of each source."""

    def read(source: Source) -> DataFrame:
        options = sample_options(source.options, source_range(source, clock), records)
        return spark.read.format("ottla").options(**options).load()

    def read_files(source: FileSource | DatabaseSource) -> DataFrame:
        if isinstance(source, DatabaseSource):
            return file_sources.frame(spark, source).limit(records)
        return file_sources.frame(spark, replace(source, is_table=True)).limit(records)

    views = Views(spark, pipeline, read, read_files)
    for name, frame in views.frames.items():
        yield _view_rows(name, frame.select(*own_columns(frame)), rows)
    for letter in views.dead_letters:
        yield _view_rows(f"dead letters of {letter.view}", refused_rows(letter.judged), rows)


def sample_options(options: Mapping[str, str], found: SourceRange, records: int) -> dict[str, str]:
    """The options of a batch query that reads the last records, spread over the partitions."""
    each = -(-records // max(len(found.end), 1))
    start = {tp: min(max(found.start.get(tp, 0), end - each), end) for tp, end in found.end.items()}
    kept = {name: text for name, text in options.items() if name not in OF_STREAMS}
    return {
        **kept,
        "startingOffsets": json.dumps(to_json(start)),
        "endingOffsets": json.dumps(to_json(found.end)),
    }


def refused_rows(judged: DataFrame) -> DataFrame:
    """Refused rows as people read them."""
    from pyspark.sql import functions as F

    return judged.where(F.col(REASON).isNotNull()).select(
        F.col(REASON).alias("reason"),
        F.col("_key").cast("string").alias("key"),
        F.col("_value").cast("string").alias("value"),
        F.col("_topic").alias("topic"),
    )


def _view_rows(name: str, frame: DataFrame, rows: int) -> ViewRows:
    first = [tuple(map(_text, row)) for row in frame.limit(rows).collect()]
    total = len(first) if len(first) < rows else frame.count()
    return ViewRows(name, tuple(frame.columns), first, total)


def _text(value: object) -> object:
    """Bytes as text, where they are."""
    return bytes(value).decode(errors="replace") if isinstance(value, bytes | bytearray) else value
