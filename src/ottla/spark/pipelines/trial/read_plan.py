"""`ottla pipeline plan`: what a run would read, from where, and how much.

Owns: which sources each query reads, its position by its checkpoint, and what is left to read.
Never: starts Spark, writes, or joins a group.

A view that a step reads is found by its name in the SQL: a column of the same name counts as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ottla.client.admin.session import Session
from ottla.model.clock import Clock, WallMs
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.spark import partition_offsets
from ottla.spark.connection import Connection
from ottla.spark.offsets import Offsets, beginning, from_json
from ottla.spark.options import SourceOptions, stream_source
from ottla.spark.pipelines.checkpoint_owner import local_folder
from ottla.spark.pipelines.queries import takes_letters
from ottla.spark.pipelines.spec import (
    Pipeline,
    PythonStep,
    RejectStep,
    Source,
    SqlStep,
    Step,
)

TEXTS: Final = re.compile(r"'(?:[^'\\]|\\.)*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
NAMES: Final = re.compile(r"(?<![.\w])\w+")


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
    sources: tuple[str, ...]
    batch: int | None
    """The last batch that is done; None for a query that begins."""
    records: int
    bytes: int


def query_plans(pipeline: Pipeline, ranges: Mapping[str, SourceRange]) -> list[QueryPlan]:
    plans = []
    for query, sources in query_sources(pipeline).items():
        batch, position = checkpoint_position(f"{pipeline.checkpoint}/{query}")
        left = [ranges[name].left(position) for name in sources if name in ranges]
        plans.append(
            QueryPlan(
                query,
                sources,
                batch,
                sum(records for records, _ in left),
                sum(in_bytes for _, in_bytes in left),
            )
        )
    return plans


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


def query_sources(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """The queries of a pipeline, in the order of their start, and the sources of each."""
    letters = {
        source.name: source.options["kafka.bootstrap.servers"]
        for source in pipeline.sources
        if source.dead_letter is not None
    }
    letters |= {
        step.name: pipeline.bootstrap
        for step in pipeline.steps
        if isinstance(step, RejectStep) and step.dead_letter is not None
    }
    views: dict[str, str] = {}
    for sink in pipeline.sinks:
        views[sink.name] = sink.source
        if sink.source in letters and takes_letters(sink, letters[sink.source]):
            del letters[sink.source]
    views |= {f"{view}_dead_letter": view for view in letters}
    sources = sources_of_views(pipeline)
    return {query: sources[view] for query, view in views.items()}


def sources_of_views(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """The sources that each view is made of, in the order of the file."""
    names = [source.name for source in pipeline.sources]
    names += [source.name for source in pipeline.files]
    found: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    for step in pipeline.steps:
        read = {source for view in _views_read(step, tuple(found)) for source in found[view]}
        found[step.name] = tuple(name for name in names if name in read)
    return found


def _views_read(step: Step, known: Sequence[str]) -> list[str]:
    if isinstance(step, SqlStep):
        names = {name.lower() for name in NAMES.findall(TEXTS.sub(" ", step.sql))}
        return [view for view in known if view.lower() in names]
    return list(step.sources) if isinstance(step, PythonStep) else [step.source]


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
