"""The datasets that a pipeline reads and writes, named by OpenLineage's rules.

Owns: their names. Pure. Never: asks a broker or a database.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlparse

from ottla.spark.pipelines.checkpoint_owner import local_folder
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


class Dataset(NamedTuple):
    """A dataset by OpenLineage's rules for names, and the view that has its columns."""

    namespace: str
    name: str
    view: str
    query: str | None = None
    """The query whose row count it has, where there is one for it alone."""


def inputs(pipeline: Pipeline) -> list[Dataset]:
    found = [one for source in pipeline.sources for one in _topics(source)]
    return [*found, *(_table(source) for source in pipeline.files)]


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
    """A topic each; a pattern, or partitions that are assigned, as they are written."""
    options = source.options
    cluster = _cluster(options["kafka.bootstrap.servers"])
    names = options.get("subscribe")
    if names is not None:
        return [Dataset(cluster, name.strip(), source.name) for name in names.split(",")]
    named = options.get("subscribePattern") or options["assign"]
    return [Dataset(cluster, named, source.name)]


def _table(source: FileSource | DatabaseSource) -> Dataset:
    if isinstance(source, FileSource):
        return _file(source.path, source.name)
    parts = urlparse(source.uri)
    if not parts.hostname:
        return Dataset(parts.scheme or "database", parts.path, source.name)
    port = f":{parts.port}" if parts.port else ""
    scheme = "postgres" if parts.scheme == "postgresql" else parts.scheme
    name = f"{parts.path.strip('/')}.{source.name}"
    return Dataset(f"{scheme}://{parts.hostname}{port}", name, source.name)


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
    return Dataset(f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/"), view)
