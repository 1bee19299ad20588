"""What becomes of a view: one streaming query for each sink, each with its own progress.

Owns: how a target is written, and where a query's checkpoint lies. Never: waits for a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import UserError
from ottla.spark.pipelines.dead_letters import header
from ottla.spark.pipelines.formats import own_columns
from ottla.spark.pipelines.lake import lake_writer
from ottla.spark.pipelines.spec import (
    ConsoleTarget,
    FilesTarget,
    Pipeline,
    Sink,
    TableTarget,
    TopicTarget,
)
from ottla.spark.pipelines.views import Views

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

JSON: Final = "json"
ONCE: Final = "once"
UPDATES: Final = "updates"
"""The name of a sink inside foreachBatch, among those of its query."""


class Output(NamedTuple):
    """A query that can be started."""

    name: str
    writer: DataStreamWriter

    def start(self) -> StreamingQuery:
        return self.writer.start()


def outputs(pipeline: Pipeline, views: Views) -> Iterator[Output]:
    """Every query of a pipeline: its sinks, and its dead letters."""
    for sink in pipeline.sinks:
        writer = _writer(sink, views.frames[sink.source]).outputMode(sink.mode)
        yield _output(pipeline, sink.name, writer)
    for letter in views.dead_letters:
        target = TopicTarget(letter.bootstrap, letter.topic)
        yield _output(pipeline, letter.name, _to_topic(target, letter.frame))


def _output(pipeline: Pipeline, name: str, writer: DataStreamWriter) -> Output:
    writer = writer.queryName(f"{pipeline.name}-{name}")
    writer = writer.option("checkpointLocation", f"{pipeline.checkpoint}/{name}")
    if pipeline.trigger == ONCE:
        return Output(name, writer.trigger(availableNow=True))
    return Output(name, writer.trigger(processingTime=pipeline.trigger))


def _writer(sink: Sink, frame: DataFrame) -> DataStreamWriter:
    if isinstance(sink.target, TopicTarget):
        records = _records(sink, sink.target, frame)
        return (_updates_to if sink.mode == "update" else _to_topic)(sink.target, records)
    frame = frame.select(*own_columns(frame))
    match sink.target:
        case FilesTarget(path, partition_by):
            writer = frame.writeStream.format("parquet").option("path", path)
            return writer.partitionBy(*partition_by) if partition_by else writer
        case TableTarget() as target:
            return frame.writeStream.foreachBatch(lake_writer(target))
        case ConsoleTarget(rows):
            return frame.writeStream.format("console").option("numRows", rows)


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


def _records(sink: Sink, target: TopicTarget, frame: DataFrame) -> DataFrame:
    """A view's rows as the sink's columns."""
    from pyspark.errors import PySparkException

    try:
        return frame.select(*_columns(target, frame))
    except PySparkException as mistake:
        first = str(mistake).strip().splitlines()[0]
        raise UserError(f"sink {sink.name}: topic: {first}") from None


def _columns(target: TopicTarget, frame: DataFrame) -> Iterator[Column]:
    from pyspark.sql import functions as F

    if target.value == JSON:
        yield F.to_json(F.struct(*own_columns(frame))).alias("value")
    else:
        yield _bytes(target.value, frame).alias("value")
    if target.key is not None:
        yield _bytes(target.key, frame).alias("key")
    if isinstance(target.headers, str):
        yield F.expr(target.headers).alias("headers")
    elif target.headers:
        told = (header(name, F.expr(text)) for name, text in target.headers.items())
        yield F.array(*told).alias("headers")
    if target.topic_of is not None:
        yield F.expr(target.topic_of).cast("string").alias("topic")
    if target.partition is not None:
        yield F.expr(target.partition).cast("int").alias("partition")


def _bytes(expression: str, frame: DataFrame) -> Column:
    """What is binary stays as it is; anything else is written as text."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType

    column = F.expr(expression)
    is_binary = isinstance(frame.select(column).schema[0].dataType, BinaryType)
    return column if is_binary else column.cast("string")
