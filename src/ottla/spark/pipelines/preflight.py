"""What would stop a pipeline when it starts: topics, paths, the owner of its checkpoints.

Owns: the list of findings, all of them, each in one line. Never: starts Spark, creates or writes
anything. What Spark says of the SQL is found by making the queries (`queries.outputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ottla.client.admin.configs import Resource, ResourceKind
from ottla.client.admin.sync import Admin
from ottla.config.client import AdminConfig
from ottla.model.errors import KafkaError, UserError
from ottla.spark.options import sink as sink_options
from ottla.spark.options import stream_source
from ottla.spark.pipelines.checkpoint_owner import check_owner, is_writable, local_folder
from ottla.spark.pipelines.spec import (
    DatabaseSource,
    FilesTarget,
    Pipeline,
    RejectStep,
    TableTarget,
    TopicTarget,
)

TIMEOUT_MS: Final = 10_000
SERVERS: Final = "bootstrap.servers"
AUTO_CREATE: Final = "auto.create.topics.enable"
OF_FILES: Final = ("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles")
"""Settings of Spark that name files of this machine; it goes on without those that are missing."""


@dataclass
class ClusterTopics:
    """The topics that a pipeline uses of one cluster, and the place of each in the file."""

    client: Mapping[str, str]
    """The settings by which it is reached."""
    read: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


def findings(pipeline: Pipeline, *, offline: bool = False) -> list[str]:
    """Everything that is wrong; `offline` without asking brokers."""
    found = [*_missing_files(pipeline), *_paths(pipeline)]
    try:
        check_owner(pipeline.checkpoint, pipeline.name)
    except UserError as mistake:
        found.append(str(mistake))
    if not offline:
        for topics in topics_by_cluster(pipeline):
            found += _topics(topics)
    return found


def topics_by_cluster(pipeline: Pipeline) -> list[ClusterTopics]:
    """The topics that are read and written, by the settings of the client that does it."""
    clusters: dict[tuple[tuple[str, str], ...], ClusterTopics] = {}

    def of(client: Mapping[str, str]) -> ClusterTopics:
        usable = {name: text for name, text in client.items() if name in AdminConfig.SETTINGS}
        return clusters.setdefault(tuple(sorted(usable.items())), ClusterTopics(usable))

    for source in pipeline.sources:
        options = stream_source(source.options)
        cluster = of(options.client)
        named = options.subscription.topics or {tp.topic for tp in options.subscription.partitions}
        for topic in named:
            cluster.read[topic] = f"sources.{source.name}"
        if source.dead_letter is not None:
            cluster.written[source.dead_letter] = f"sources.{source.name}.dead_letter"
    for step in pipeline.steps:
        if isinstance(step, RejectStep) and step.dead_letter is not None:
            cluster = of({SERVERS: pipeline.bootstrap})
            cluster.written[step.dead_letter] = f"step {step.name}: dead_letter"
    for sink in pipeline.sinks:
        target = sink.target
        if isinstance(target, TopicTarget):
            given = {f"kafka.{SERVERS}": target.bootstrap, **target.options}
            cluster = of(sink_options(given).client)
            if target.topic is not None:
                cluster.written[target.topic] = f"sink {sink.name}"
    return list(clusters.values())


def _topics(topics: ClusterTopics) -> Iterator[str]:
    servers = topics.client[SERVERS]
    try:
        with Admin(config={"default.api.timeout.ms": TIMEOUT_MS, **topics.client}) as admin:
            existing = set(admin.list_topics(internal=True))
            yield from _missing(servers, topics, existing, partial(_creates_topics, admin))
    except (OSError, KafkaError) as failure:
        yield f"bootstrap: no answer from {servers}: {failure}"


def _missing(
    servers: str, topics: ClusterTopics, existing: set[str], creates: Callable[[], bool]
) -> Iterator[str]:
    for topic, where in topics.read.items():
        if topic not in existing:
            yield f"{where}: there is no topic {topic} at {servers}"
    missing = {topic: where for topic, where in topics.written.items() if topic not in existing}
    if missing and not creates():
        for topic, where in missing.items():
            yield (
                f"{where}: there is no topic {topic} at {servers}, and the broker creates none "
                f"({AUTO_CREATE}=false)"
            )


def _creates_topics(admin: Admin) -> bool:
    """Whether a topic is created when it is first written; assumed where it may not be asked."""
    broker = Resource(ResourceKind.BROKER, str(admin.describe_cluster().brokers[0].id))
    try:
        entry = admin.describe_configs([broker], names=[AUTO_CREATE]).all()[broker].get(AUTO_CREATE)
    except KafkaError:
        return True
    return entry is None or entry.value != "false"


def _missing_files(pipeline: Pipeline) -> Iterator[str]:
    for source in pipeline.files:
        if isinstance(source, DatabaseSource):
            continue  # asked for its columns when the views are made
        path = local_folder(source.path)
        if path is not None and not is_pattern(source.path) and not path.exists():
            yield f"sources.{source.name}.{source.kind}: there is no {source.path}"
    for setting in OF_FILES:
        for name in filter(None, map(str.strip, pipeline.spark.get(setting, "").split(","))):
            path = local_folder(name.partition("#")[0])
            if path is not None and not is_pattern(name) and not path.exists():
                yield f"spark.{setting}: there is no {name}"


def is_pattern(path: str) -> bool:
    return not set("*?[{").isdisjoint(path)


def _paths(pipeline: Pipeline) -> Iterator[str]:
    paths = {"checkpoint": pipeline.checkpoint}
    for sink in pipeline.sinks:
        if isinstance(sink.target, FilesTarget | TableTarget):
            paths[f"sink {sink.name}: path"] = sink.target.path
    for where, path in paths.items():
        if not is_writable(path):
            yield f"{where}: {path} cannot be written"
