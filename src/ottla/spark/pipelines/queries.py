"""What becomes of a view: one streaming query for each sink, each with its own progress.

Owns: how a target is written, and where a query's checkpoint lies. Never: waits for a query.

Dead letters are a query of their own, unless a sink writes the very view they were refused from to
the same cluster: then its query reads the rows once, and writes each to one topic or the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.formats import REASON, own_columns
from ottla.spark.pipelines.dlq.letters import header, letter, letters
from ottla.spark.pipelines.encoding.encoded_columns import encoded
from ottla.spark.pipelines.lake.writer import lake_writer
from ottla.spark.pipelines.spec import (
    ConsoleTarget,
    Encoding,
    FilesTarget,
    Pipeline,
    Sink,
    TableTarget,
    TopicTarget,
)
from ottla.spark.pipelines.views import DeadLetter, Views

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

JSON: Final = "json"
ONCE: Final = "once"
UPDATES: Final = "updates"
"""The name of a sink inside foreachBatch, among those of its query."""


class QueryOutput(NamedTuple):
    """A query that can be started."""

    name: str
    writer: DataStreamWriter

    def start(self) -> StreamingQuery:
        return self.writer.start()


def outputs(pipeline: Pipeline, views: Views) -> Iterator[QueryOutput]:
    """Every query of a pipeline: its sinks, and its dead letters."""
    apart = {each.view: each for each in views.dead_letters}
    for sink in pipeline.sinks:
        refused = apart.get(sink.source)
        if refused is not None and takes_letters(sink, refused.bootstrap):
            del apart[sink.source]
            writer = _beside_letters(sink, refused, pipeline.name)
        else:
            writer = _writer(sink, views.frames[sink.source])
        yield _output(pipeline, sink.name, writer.outputMode(sink.mode))
    for each in apart.values():
        target = TopicTarget(each.bootstrap, each.topic)
        found = letters(each.judged, pipeline.name)
        yield _output(pipeline, each.name, _to_topic(target, found))


def _output(pipeline: Pipeline, name: str, writer: DataStreamWriter) -> QueryOutput:
    writer = writer.queryName(f"{pipeline.name}-{name}")
    writer = writer.option("checkpointLocation", f"{pipeline.checkpoint}/{name}")
    if pipeline.trigger == ONCE:
        return QueryOutput(name, writer.trigger(availableNow=True))
    return QueryOutput(name, writer.trigger(processingTime=pipeline.trigger))


def _writer(sink: Sink, frame: DataFrame) -> DataStreamWriter:
    if isinstance(sink.target, TopicTarget):
        records = topic_records(sink, frame)
        return (_updates_to if sink.mode == "update" else _to_topic)(sink.target, records)
    _check_columns(sink, frame)
    if isinstance(sink.target, TableTarget):
        return frame.writeStream.foreachBatch(lake_writer(sink.target))
    frame = frame.select(*own_columns(frame))
    match sink.target:
        case FilesTarget(path, partition_by, kind, options):
            writer = frame.writeStream.format(kind).options(**options).option("path", path)
            return writer.partitionBy(*partition_by) if partition_by else writer
        case ConsoleTarget(rows):
            return frame.writeStream.format("console").option("numRows", rows)


def topic_records(sink: Sink, frame: DataFrame) -> DataFrame:
    """The rows of a view as the records that a sink to a topic writes."""
    assert isinstance(sink.target, TopicTarget)
    with _analysed(sink):
        return _records(frame, _columns(sink.target, frame))


def _check_columns(sink: Sink, frame: DataFrame) -> None:
    """UserError for a column that the view does not have, before anything runs."""
    target = sink.target
    named: dict[str, tuple[str, ...]] = {}
    if isinstance(target, FilesTarget | TableTarget):
        named["partition_by"] = target.partition_by
    if isinstance(target, TableTarget):
        named["upsert_by"] = target.keys
        named["order_by"] = () if target.order_by is None else (target.order_by,)
        if target.delete_when is not None:
            with _analysed(sink, "delete_when"):
                frame.where(target.delete_when)
    for key, columns in named.items():
        for column in columns:
            if column not in frame.columns:
                listing = ", ".join(frame.columns)
                raise UserError(
                    f"sink {sink.name}: {key}: {sink.source} has no column {column!r}; it has "
                    f"{listing}"
                )


def takes_letters(sink: Sink, bootstrap: str) -> bool:
    """Whether a sink may write its view's letters, for this cluster, too: what it was told of its
    own holds for both."""
    target = sink.target
    return (
        isinstance(target, TopicTarget)
        and target.bootstrap == bootstrap
        and not target.options
        and sink.mode == "append"
    )


def _beside_letters(sink: Sink, refused: DeadLetter, pipeline: str) -> DataStreamWriter:
    """Rows and letters of one view, each to its topic."""
    from pyspark.sql import functions as F

    target = sink.target
    assert isinstance(target, TopicTarget)
    theirs = {**letter(pipeline), "topic": F.lit(refused.topic)}
    is_good, nothing = F.col(REASON).isNull(), F.lit(None)
    with _analysed(sink):
        own = {"topic": F.lit(target.topic), **_columns(target, refused.judged)}
        either = {
            name: F.when(is_good, own.get(name, nothing)).otherwise(theirs.get(name, nothing))
            for name in {**own, **theirs}
        }
        records = _records(refused.judged, either)
    return _to_topic(replace(target, topic=None), records)


def _to_topic(target: TopicTarget, records: DataFrame) -> DataStreamWriter:
    return records.writeStream.format("ottla").options(**_options(target))


def _updates_to(target: TopicTarget, records: DataFrame) -> DataStreamWriter:
    """Spark's own sinks in Python take no updates; a batch of them, by its name, once, they do."""
    options = {**_options(target), "ottla.sink": UPDATES}

    def write(batch: DataFrame, _: int) -> None:
        batch.write.format("ottla").options(**options).mode("append").save()

    return records.writeStream.foreachBatch(write)


def _options(target: TopicTarget) -> dict[str, str]:
    options = {"kafka.bootstrap.servers": target.bootstrap, **target.options}
    return options if target.topic is None else {"topic": target.topic, **options}


def _records(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def _columns(target: TopicTarget, frame: DataFrame) -> dict[str, Column]:
    """A view's rows as the sink's columns."""
    from pyspark.sql import functions as F

    made: dict[str, Column] = {"value": _bytes(target.value, frame)}
    if target.key is not None:
        made["key"] = _bytes(target.key, frame)
    if isinstance(target.headers, str):
        made["headers"] = F.expr(target.headers)
    elif target.headers:
        told = (header(name, F.expr(text)) for name, text in target.headers.items())
        made["headers"] = F.array(*told)
    if target.topic_of is not None:
        made["topic"] = F.expr(target.topic_of).cast("string")
    if target.partition is not None:
        made["partition"] = F.expr(target.partition).cast("int")
    return made


def _bytes(expression: str | Encoding, frame: DataFrame) -> Column:
    """What is binary stays as it is; anything else is written as text, or as its encoding says."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType

    row = F.struct(*own_columns(frame))
    if isinstance(expression, Encoding):
        column = F.expr(expression.of) if expression.of else row
        if REASON in frame.columns:  # refused rows need not fit a schema
            column = F.when(F.col(REASON).isNull(), column)
        return encoded(expression, frame, column)
    if expression == JSON:
        return F.to_json(row).cast("binary")
    column = F.expr(expression)
    is_binary = isinstance(frame.select(column).schema[0].dataType, BinaryType)
    return column if is_binary else column.cast("string").cast("binary")


@contextmanager
def _analysed(sink: Sink, key: str = "topic") -> Iterator[None]:
    """Spark's complaint about a column, as one line that says whose it is."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as mistake:
        first = str(mistake).strip().splitlines()[0]
        raise UserError(f"sink {sink.name}: {key}: {first}") from None
