"""The datasets that a pipeline reads and writes, named by OpenLineage's rules.

Owns: their names. Pure. Never: asks a broker or a database.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import unquote, urlparse

from ottla.spark.options import stream_source
from ottla.spark.pipelines.checkpoint_owner import local_folder
from ottla.spark.pipelines.lineage.database_tables import Table, tables_read
from ottla.spark.pipelines.spec import (
    DatabaseSource,
    FileSource,
    FilesTarget,
    Pipeline,
    RejectStep,
    Sink,
    Source,
    TableTarget,
    TopicTarget,
)

POSTGRES_PORT: Final = 5432
OBJECT_STORES: Final = ("s3", "gs", "wasbs")
"""Where names are keys, and no paths."""


class Dataset(NamedTuple):
    """A dataset by OpenLineage's rules for names, and the view that has its columns."""

    namespace: str
    name: str
    view: str
    query: str | None = None
    """The query whose row count it has, where there is one for it alone."""
    has_columns: bool = True
    """Whether its columns are those of the view, and not of a query that reads it."""


def inputs(pipeline: Pipeline) -> list[Dataset]:
    found = [one for source in pipeline.sources for one in _topics(source)]
    for source in pipeline.files:
        if isinstance(source, FileSource):
            found.append(_file(source.path, source.name))
        else:
            found += tables(source)
    return found


def outputs(pipeline: Pipeline) -> list[Dataset]:
    found = [one for sink in pipeline.sinks for one in _target(sink)]
    for source in pipeline.sources:
        if source.dead_letter is not None:
            servers = source.options["kafka.bootstrap.servers"]
            found.append(Dataset(_cluster(servers), source.dead_letter, source.name))
    for step in pipeline.steps:
        if isinstance(step, RejectStep) and step.dead_letter is not None:
            found.append(Dataset(_cluster(pipeline.bootstrap), step.dead_letter, step.name))
    return list({(one.namespace, one.name): one for one in reversed(found)}.values())[::-1]


def _topics(source: Source) -> list[Dataset]:
    """A topic each; a pattern as it is written."""
    options = source.options
    cluster = _cluster(options["kafka.bootstrap.servers"])
    topics = stream_source(options).subscription
    names = sorted(topics.topics or {partition.topic for partition in topics.partitions})
    if not names:
        names = [options["subscribePattern"]]
    return [Dataset(cluster, name, source.name) for name in names]


def tables(source: DatabaseSource) -> list[Dataset]:
    """The tables that its query reads: DATABASE.SCHEMA.TABLE in PostgreSQL."""
    parts = urlparse(source.uri)
    read = tables_read(source.query) or [Table((), source.name)]
    whole = source.query == f"SELECT * FROM {source.query.rpartition(' ')[2]}"
    if parts.scheme in ("postgresql", "postgres"):
        namespace = f"postgres://{parts.hostname or 'localhost'}:{parts.port or POSTGRES_PORT}"
        database = unquote(parts.path.strip("/") or parts.username or "postgres")
        outer: tuple[str, ...] = (database, "public")
    elif parts.hostname:
        port = f":{parts.port}" if parts.port else ""
        namespace, outer = f"{parts.scheme}://{parts.hostname}{port}", (parts.path.strip("/"),)
    else:
        namespace, outer = parts.scheme or "database", (parts.path,)
    return [
        Dataset(namespace, table.name_within(outer), source.name, has_columns=whole)
        for table in read
    ]


def _target(sink: Sink) -> list[Dataset]:
    target = sink.target
    match target:
        case TopicTarget():
            name = target.topic or f"({target.topic_of})"
            return [Dataset(_cluster(target.bootstrap), name, sink.source, sink.name)]
        case FilesTarget() | TableTarget():
            return [_file(target.path, sink.source)._replace(query=sink.name)]
        case _:
            return []


def _cluster(servers: str) -> str:
    return f"kafka://{servers.split(',')[0].strip()}"


def _file(path: str, view: str) -> Dataset:
    local = local_folder(path)
    if local is not None:
        return Dataset("file", str(local.absolute()), view)
    parts = urlparse(path)
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    name = parts.path.lstrip("/") if scheme in OBJECT_STORES else parts.path
    return Dataset(f"{scheme}://{parts.netloc}", name, view)
