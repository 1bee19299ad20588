"""One query that reads a source for several sinks.

Owns: what is done with a batch of such a query: its rows are decoded and kept once, the views are
made of them, and each write takes the batch once, by (query, write, batch). A driver that dies
between two writes runs the batch again, and the writes that were done change nothing.

Topics are written under the write's name in the sink's commit log, tables by the number of the
batch in their own log, files by Spark's list of them. A console may show a batch twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.spark.pipelines.decoding.formats import own_columns
from ottla.spark.pipelines.dlq.letters import letters
from ottla.spark.pipelines.lake.writer import lake_writer
from ottla.spark.pipelines.sinks.query_layout import (
    Member,
    QueryLayout,
    Write,
    sources_of_views,
    steps_for,
)
from ottla.spark.pipelines.sinks.records import check_columns, options_of, topic_records
from ottla.spark.pipelines.spec import (
    ConsoleTarget,
    FileSource,
    FilesTarget,
    Pipeline,
    SqlStep,
    TableTarget,
    TopicTarget,
)
from ottla.spark.pipelines.views import Views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

STATELESS: Final = frozenset(
    (
        *("Filter", "Generate", "Join", "Project", "ResolvedHint", "SubqueryAlias", "View"),
        *("ArrowEvalPython", "BatchEvalPython", "EventTimeWatermark", "MapInArrow"),
        *("InMemoryRelation", "LocalRelation", "LogicalRDD", "LogicalRelation"),
        *("OneRowRelation", "Relation", "RelationV2", "StreamingRelation", "StreamingRelationV2"),
    )
)
"""Nodes of a plan that keep nothing from one batch to the next, where one stream has a part."""
NOT_A_NAME: Final = re.compile(r"[\s,\[]")
"""What ends the name of a node: columns may follow without a space."""
STREAMS: Final = ("StreamingRelation", "StreamingRelationV2")

WriteBatch: TypeAlias = "Callable[[Views, DataFrame, int], None]"
"""Writes a batch: its views, its rows, its number."""


def is_stateless(frame: DataFrame) -> bool:
    """Whether every batch of a streaming view is made of the rows of this batch alone."""
    jdf = getattr(frame, "_jdf", None)
    if jdf is None:  # Spark Connect
        return False
    lines = str(jdf.queryExecution().analyzed().toString()).splitlines()
    nodes = [words[0] for line in lines if (words := NOT_A_NAME.split(line.lstrip(" :+-~"), 1))[0]]
    return STATELESS.issuperset(nodes) and sum(node in STREAMS for node in nodes) == 1


def shared_query(pipeline: Pipeline, views: Views, layout: QueryLayout) -> DataStreamWriter:
    """The query of sinks that share a source, not started."""
    tables = {source.name for source in pipeline.files if source.is_table}
    read = sources_of_views(pipeline)[layout.members[0].view]
    source = next(name for name in read if name not in tables)
    writers = [_writer(pipeline, views, write) for write in layout.writes]
    of_batch = _pipeline_of_batch(pipeline, layout, source)
    kept = {name: views.frames[name] for name in tables if name in views.frames}

    def write_batch(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            with views.table_use.batch():
                made = Views(batch.sparkSession, of_batch, batch={source: batch, **kept})
                for write in writers:
                    write(made, batch, number)
        finally:
            batch.unpersist()

    return views.judged[source].writeStream.foreachBatch(write_batch)


def _pipeline_of_batch(pipeline: Pipeline, layout: QueryLayout, source: str) -> Pipeline:
    """The part of a pipeline that the query needs; a batch has no use for watermarks."""
    steps = steps_for(pipeline, [member.view for member in layout.members])
    return replace(
        pipeline,
        sources=tuple(replace(s, watermark=None) for s in pipeline.sources if s.name == source),
        files=tuple(
            replace(f, watermark=None) if isinstance(f, FileSource) else f
            for f in pipeline.files
            if f.is_table or f.name == source
        ),
        steps=tuple(replace(s, watermark=None) if isinstance(s, SqlStep) else s for s in steps),
    )


def _writer(pipeline: Pipeline, views: Views, write: Write) -> WriteBatch:
    """How a write is done; what is wrong with its columns is said before anything runs."""
    sink = write.members[0].sink
    if sink is None or isinstance(sink.target, TopicTarget):
        _records(pipeline, views, write.members)
        return _topics_writer(pipeline, write)
    check_columns(sink, views.frames[sink.source])
    match sink.target:
        case TableTarget() as table:
            to_table = lake_writer(table, sink.name)
            return lambda made, _, number: to_table(made.frames[sink.source], number)
        case FilesTarget() as files:
            return lambda made, _, number: _add_files(files, made.frames[sink.source], number)
        case ConsoleTarget(rows):
            return lambda made, _, number: _show(made.frames[sink.source], number, rows)


def _topics_writer(pipeline: Pipeline, write: Write) -> WriteBatch:
    def to_topics(made: Views, batch: DataFrame, _: int) -> None:
        records = _records(pipeline, made, write.members)
        tasks = batch.sparkSession.sparkContext.defaultParallelism
        writer = records.coalesce(tasks).write.format("ottla").options(**_options(write))
        writer.mode("append").save()

    return to_topics


def _options(write: Write) -> Mapping[str, str]:
    member = write.members[0]
    own = {"ottla.sink": write.name}
    if member.sink is None:
        return {"kafka.bootstrap.servers": member.bootstrap, **own}
    assert isinstance(member.sink.target, TopicTarget)
    return {**options_of(replace(member.sink.target, topic=None)), **own}


def _records(pipeline: Pipeline, views: Views, members: Sequence[Member]) -> DataFrame:
    """What the members write, each record with its topic."""
    from pyspark.sql import functions as F

    frames: list[DataFrame] = []
    for member in members:
        if member.sink is not None:
            target = member.sink.target
            assert isinstance(target, TopicTarget)
            records = topic_records(member.sink, views.frames[member.view])
            named = target.topic is not None
            frames.append(records.withColumn("topic", F.lit(target.topic)) if named else records)
        if member.letters:
            refused = next(each for each in views.dead_letters if each.view == member.view)
            found = letters(refused.judged, pipeline.name)
            frames.append(found.withColumn("topic", F.lit(refused.topic)))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _add_files(target: FilesTarget, frame: DataFrame, number: int) -> None:
    """As Spark's own sink for files does: a batch that is in its list is not added again."""
    from pyspark import SparkContext

    rows = frame.select(*own_columns(frame))
    jvm = SparkContext._jvm
    assert jvm is not None, "a batch runs in a session of this process"
    sources = jvm.org.apache.spark.sql.execution.datasources
    formats = {
        "parquet": sources.parquet.ParquetFileFormat,
        "csv": sources.csv.CSVFileFormat,
        "json": sources.json.JsonFileFormat,
    }
    session = rows.sparkSession._jsparkSession
    path = jvm.org.apache.hadoop.fs.Path(target.path)
    files = path.getFileSystem(session.sessionState().newHadoopConf())
    sink = jvm.org.apache.spark.sql.execution.streaming.sinks.FileStreamSink(
        session,
        path.makeQualified(files.getUri(), files.getWorkingDirectory()).toString(),
        formats[target.kind](),
        jvm.PythonUtils.toSeq(list(target.partition_by)),
        jvm.PythonUtils.toScalaMap({**target.options, "path": target.path}),
    )
    sink.addBatch(number, rows._jdf)


def _show(frame: DataFrame, number: int, rows: int) -> None:
    """As Spark's console does."""
    line = "-" * 43
    shown = frame.select(*own_columns(frame))._jdf.showString(rows, 20, False)
    print(f"{line}\nBatch: {number}\n{line}\n{shown}", flush=True)
