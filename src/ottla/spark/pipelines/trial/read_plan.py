"""`ottla pipeline plan`: what a run would read, from where, and how much.

Owns: which sources each query reads, its position by its checkpoint, and what is left to read.
Never: starts Spark, writes, or joins a group.

A view that a step reads is found by its name in the SQL: a column of the same name counts as well.
So is state: which sinks share a query is certain only once the pipeline has been started.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.client.admin.session import Session
from ottla.model.clock import Clock, WallMs
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.spark import partition_offsets
from ottla.spark.connection import Connection
from ottla.spark.offsets import Offsets, beginning, from_json
from ottla.spark.options import SourceOptions, stream_source
from ottla.spark.pipelines.checkpoint_owner import Checkpoints, local_folder
from ottla.spark.pipelines.sinks.query_layout import (
    QueryLayout,
    layouts,
    seems_stateless,
    sources_of_views,
)
from ottla.spark.pipelines.sinks.state_changes import state_change
from ottla.spark.pipelines.spec import Pipeline, Source


class SourceRange(NamedTuple):
    """The records of a source: where a new query begins, and the end now."""

    start: Offsets
    end: Offsets
    bytes_each: Mapping[TopicPartition, float]
    """The average size of a record, where the brokers tell it."""

    def left(self, position: Offsets | None) -> tuple[int, int]:
        """Records and bytes after a position; partitions it does not know begin at the start."""
        records = total_bytes = 0
        for tp, end in self.end.items():
            begin = self.start.get(tp, 0) if position is None else position.get(tp, 0)
            count = max(end - begin, 0)
            records += count
            total_bytes += round(count * self.bytes_each.get(tp, 0.0))
        return records, total_bytes


class QueryPlan(NamedTuple):
    """What one query would read."""

    query: str
    sinks: tuple[str, ...]
    """More than one where sinks share a read of their source."""
    sources: tuple[str, ...]
    batch: int | None
    """The last batch that is done; None for a query that begins."""
    records: int
    bytes: int
    change: str | None = None
    """What the changed file means for its state."""


def query_plans(pipeline: Pipeline, ranges: Mapping[str, SourceRange]) -> list[QueryPlan]:
    plans = []
    of_views = sources_of_views(pipeline)
    checkpoints = Checkpoints(pipeline.checkpoint)
    for layout in planned_layouts(pipeline):
        query, views = layout.name, [member.view for member in layout.members]
        used = {name for view in views for name in of_views[view]}
        sources = tuple(name for name in of_views if name in used)
        batch, position = checkpoint_position(f"{pipeline.checkpoint}/{query}")
        left = [ranges[name].left(position) for name in sources if name in ranges]
        plans.append(
            QueryPlan(
                query,
                tuple(member.name for member in layout.members),
                sources,
                batch,
                sum(records for records, _ in left),
                sum(in_bytes for _, in_bytes in left),
                state_change(pipeline, layout, checkpoints),
            )
        )
    return plans


def planned_layouts(pipeline: Pipeline) -> list[QueryLayout]:
    """The queries, as far as they can be known without Spark: by the checkpoints where it has run,
    else by the words of its SQL."""
    checkpoints = Checkpoints(pipeline.checkpoint)
    return layouts(
        pipeline, seems_stateless(pipeline), checkpoints.shared_queries(), checkpoints.has
    )


def source_range(source: Source, clock: Clock) -> SourceRange:
    """Ask the source's cluster."""
    options = stream_source(source.options)
    with Connection(options.config()) as connection:
        return connection.run(_range(connection.session, options, clock.wall_ms()))


async def _range(session: Session, options: SourceOptions, now_ms: WallMs) -> SourceRange:
    found = await partition_offsets.initial_partitions(session, options)
    start = await partition_offsets.at(session, options, found)
    end = await partition_offsets.latest(session, options, found, now_ms)
    try:
        weights = await partition_offsets.bytes_each(session, end)
    except KafkaError:  # it takes the right to describe the cluster
        weights = {}
    return SourceRange(start, end, weights)


def file_sizes(path: str) -> tuple[int, int] | None:
    """How many files a source has, and their bytes; None where they are not on a local disk.

    Names that begin with `_` or a dot are not read by Spark.
    """
    local = local_folder(path)
    if local is None:
        return None
    whole = local.absolute()
    found = Path(whole.anchor).glob(str(whole.relative_to(whole.anchor)))
    files = [file for each in found for file in ([each] if each.is_file() else each.glob("*"))]
    sizes = [file.stat().st_size for file in files if file.is_file() and file.name[0] not in "._"]
    return len(sizes), sum(sizes)


def checkpoint_position(checkpoint: str) -> tuple[int | None, Offsets | None]:
    """The last batch that a query has done, and where it ended; None where it begins anew.

    Of a first batch that is not done, the position where it began.
    """
    folder = local_folder(checkpoint)
    if folder is None or not (folder / "offsets").is_dir():
        return None, None
    done = max(_batches(folder / "commits"), default=None)
    if done is not None and (folder / "offsets" / str(done)).is_file():
        return done, _position(folder / "offsets" / str(done))
    first = folder / "offsets" / "0"
    return None, _position(first, began=True) if first.is_file() else None


def _batches(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("[0-9]*")] if folder.is_dir() else []


def _position(path: Path, *, began: bool = False) -> Offsets | None:
    """Line one is the version, line two Spark's own; then there is one for each source."""
    position: Offsets = {}
    for line in path.read_text().splitlines()[2:]:
        values = json.loads(line) if line.startswith("{") else {}
        if not all(isinstance(value, dict | str) for value in values.values()):
            continue  # of a source that is not a topic
        offsets = beginning(values) if began else from_json(values)
        if offsets is None:
            return None
        position |= offsets
    return position
