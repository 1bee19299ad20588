"""What becomes of a view: the streaming queries of a pipeline, each with its own progress.

Owns: how a target is written by a query of its own, and where a query's checkpoint lies. Never:
waits for a query. Which sinks share a query is decided by `query_layout`, and how such a query
writes by `shared_reads`.

A sink that writes the very view from which rows are refused to the same cluster writes the dead
letters, too: its query reads the rows once, and writes each to one topic or the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import UserError
from ottla.spark.pipelines.checkpoint_owner import Checkpoints
from ottla.spark.pipelines.decoding.formats import REASON, own_columns
from ottla.spark.pipelines.dlq.letters import letter, letters
from ottla.spark.pipelines.lake.writer import lake_writer
from ottla.spark.pipelines.sinks.query_layout import (
    Member,
    check_writes,
    layouts,
    record_of,
)
from ottla.spark.pipelines.sinks.records import (
    analysed,
    as_records,
    check_columns,
    options_of,
    record_columns,
    topic_records,
)
from ottla.spark.pipelines.sinks.shared_reads import is_stateless, shared_query
from ottla.spark.pipelines.sinks.state_changes import state_change, state_steps
from ottla.spark.pipelines.spec import (
    ConsoleTarget,
    FilesTarget,
    Pipeline,
    Sink,
    TableTarget,
    TopicTarget,
)
from ottla.spark.pipelines.views import DeadLetter, Views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

log = logging.getLogger(__name__)

ONCE: Final = "once"
UPDATES: Final = "updates"
"""The name of a sink inside foreachBatch, among those of its query."""


class QueryOutput(NamedTuple):
    """A query that can be started."""

    name: str
    writer: DataStreamWriter
    before_start: Callable[[], None] | None = None

    def start(self) -> StreamingQuery:
        if self.before_start is not None:
            self.before_start()
        return self.writer.start()


def outputs(pipeline: Pipeline, views: Views) -> Iterator[QueryOutput]:
    """Every query of a pipeline: its sinks, and its dead letters."""
    checkpoints = Checkpoints(pipeline.checkpoint)
    if not checkpoints.can_share:
        pipeline = replace(pipeline, shared_reads=False)
    begun = checkpoints.shared_queries()
    made = layouts(pipeline, lambda view: is_stateless(views.frames[view]), begun, checkpoints.has)
    check_writes(made, begun, checkpoints.unfinished)
    refused = {each.view: each for each in views.dead_letters}
    for layout in made:
        changed = state_change(pipeline, layout, checkpoints)
        if changed is not None:
            log.warning("query %s: %s", layout.name, changed)
        state = {layout.name: state_steps(pipeline, layout)}
        record = partial(checkpoints.record, pipeline.name, record_of(made), state)
        if layout.is_shared:
            writer = shared_query(pipeline, views, layout)
        else:
            [member] = layout.members
            writer = _own_query(pipeline, views, member, refused.get(member.view))
        yield _output(pipeline, layout.name, writer, record)


def sink_mistakes(pipeline: Pipeline, views: Views) -> list[str]:
    """What is wrong with the columns and expressions of each sink whose view there is; if nothing
    is, and all views are there, what stops the queries otherwise."""
    found: list[str] = []
    sinks = [sink for sink in pipeline.sinks if sink.source in views.frames]
    for sink in sinks:
        try:
            _writer(sink, views.frames[sink.source])
        except UserError as mistake:
            found.append(str(mistake))
    every = (*pipeline.sources, *pipeline.files, *pipeline.steps)
    has_all = len(sinks) == len(pipeline.sinks) and all(view.name in views.frames for view in every)
    if has_all and not found:
        try:
            list(outputs(pipeline, views))
        except UserError as mistake:
            found.append(str(mistake))
    return found


def _own_query(
    pipeline: Pipeline, views: Views, member: Member, refused: DeadLetter | None
) -> DataStreamWriter:
    sink = member.sink
    if sink is None:
        assert refused is not None
        target = TopicTarget(refused.bootstrap, refused.topic)
        return _to_topic(target, letters(refused.judged, pipeline.name))
    if member.letters and refused is not None:
        return _beside_letters(sink, refused, pipeline.name).outputMode(sink.mode)
    return _writer(sink, views.frames[sink.source]).outputMode(sink.mode)


def _output(
    pipeline: Pipeline,
    name: str,
    writer: DataStreamWriter,
    before_start: Callable[[], None],
) -> QueryOutput:
    writer = writer.queryName(f"{pipeline.name}-{name}")
    writer = writer.option("checkpointLocation", f"{pipeline.checkpoint}/{name}")
    if pipeline.trigger == ONCE:
        return QueryOutput(name, writer.trigger(availableNow=True), before_start)
    return QueryOutput(name, writer.trigger(processingTime=pipeline.trigger), before_start)


def _writer(sink: Sink, frame: DataFrame) -> DataStreamWriter:
    if isinstance(sink.target, TopicTarget):
        records = topic_records(sink, frame)
        return (_updates_to if sink.mode == "update" else _to_topic)(sink.target, records)
    check_columns(sink, frame)
    if isinstance(sink.target, TableTarget):
        return frame.writeStream.foreachBatch(lake_writer(sink.target))
    frame = frame.select(*own_columns(frame))
    match sink.target:
        case FilesTarget(path, partition_by, kind, options):
            writer = frame.writeStream.format(kind).options(**options).option("path", path)
            return writer.partitionBy(*partition_by) if partition_by else writer
        case ConsoleTarget(rows):
            return frame.writeStream.format("console").option("numRows", rows)


def _beside_letters(sink: Sink, refused: DeadLetter, pipeline: str) -> DataStreamWriter:
    """Rows and letters of one view, each to its topic."""
    from pyspark.sql import functions as F

    target = sink.target
    assert isinstance(target, TopicTarget)
    theirs = {**letter(pipeline), "topic": F.lit(refused.topic)}
    is_good, nothing = F.col(REASON).isNull(), F.lit(None)
    with analysed(sink):
        own = {"topic": F.lit(target.topic), **record_columns(target, refused.judged)}
        either = {
            name: F.when(is_good, own.get(name, nothing)).otherwise(theirs.get(name, nothing))
            for name in {**own, **theirs}
        }
        records = as_records(refused.judged, either)
    return _to_topic(replace(target, topic=None), records)


def _to_topic(target: TopicTarget, records: DataFrame) -> DataStreamWriter:
    return records.writeStream.format("ottla").options(**options_of(target))


def _updates_to(target: TopicTarget, records: DataFrame) -> DataStreamWriter:
    """Spark's own sinks in Python take no updates; a batch of them, by its name, once, they do."""
    options = {**options_of(target), "ottla.sink": UPDATES}

    def write(batch: DataFrame, _: int) -> None:
        batch.write.format("ottla").options(**options).mode("append").save()

    return records.writeStream.foreachBatch(write)
