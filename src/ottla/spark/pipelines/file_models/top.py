"""A whole pipeline file, and its JSON Schema for editors.

Owns: the keys at the top of a file, how names must be chosen, and the order in which mistakes are
reported: those of the keys, of schemas and options, of names. An item that is wrong is left out of
the later checks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, NamedTuple

from pydantic import BeforeValidator, ConfigDict

from ottla.model.errors import UserError
from ottla.spark.pipelines import spec
from ottla.spark.pipelines.file_models.base import (
    Duration,
    FileModel,
    IsList,
    IsMapping,
    Mistakes,
    Options,
    Place,
    Text,
    key,
    mistakes_of,
    model_of,
    plain_text,
)
from ottla.spark.pipelines.file_models.formats import RegistryKeys
from ottla.spark.pipelines.file_models.sinks import Count, OneSink
from ottla.spark.pipelines.file_models.sources import (
    NEVER,
    DatabaseSourceKeys,
    Defaults,
    FileSourceKeys,
    SourceKeys,
    TopicSourceKeys,
)
from ottla.spark.pipelines.file_models.steps import StepKeys
from ottla.spark.pipelines.restarts import RestartPolicy
from ottla.spark.pipelines.variables import YamlValue

BOOTSTRAP: Final = "localhost:9092"
TRIGGERS: Final = re.compile(r"once|\d+ (millisecond|second|minute|hour)s?")
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
USUAL: Final = RestartPolicy()
UNNAMED: Final = "unnamed"
"""Stands for a name, or a registry, that is wrong, in the rest of the checks."""
ITEMS: Final = ("sources", "steps", "sinks")
"""Keys whose items are checked one by one."""
NEEDED: Final = {
    "sources": "; see ottla pipeline list-templates",
    "sinks": ": where the rows go",
}
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
OF_FILES: Final[Mapping[str, YamlValue]] = {
    "include": {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": "Files whose values are put under those of this one.",
    },
    "profile": {"type": "string", "description": "The profile that is used without --profile."},
    "profiles": {
        "type": "object",
        "additionalProperties": {"type": "object"},
        "description": "Values put over the file's, by the name of an environment.",
    },
}
"""Keys that are gone when a file is parsed: `file_values` has applied them."""


class GroupSyncKeys(FileModel):
    """Consumer groups that continue at the target of a mirror."""

    origin: Text | None = key("host:port of the cluster that is copied.", None)
    target: Text = key("host:port of the cluster that is copied to.")
    groups: Text = key("A pattern for the names of groups.", ".*")
    every: Duration = key("How often offsets are translated.", 10_000)


class LineageKeys(FileModel):
    """Where events about runs and datasets are sent."""

    namespace: Text | None = key("Of the job; default: OPENLINEAGE_NAMESPACE, or default.", None)
    transport: Annotated[dict[str, YamlValue], IsMapping] = key(
        "A transport of OpenLineage's client; default: as its environment says.", {}
    )


class RestartKeys(FileModel):
    """When a query that failed is started again."""

    WORDS: ClassVar[Mapping[str, Mapping[str, YamlValue]]] = {NEVER: {"attempts": 0}}

    attempts: Count = key("Restarts without a batch between them.", USUAL.attempts)
    backoff: Duration = key("Before the first restart; doubles each time.", USUAL.backoff_ms)
    backoff_max: Duration = key("The longest pause.", USUAL.backoff_max_ms)


def _trigger(value: object) -> str:
    text = plain_text(value)
    if not TRIGGERS.fullmatch(text):
        raise ValueError(f"{text!r}: expected once, or a time such as 5 seconds")
    return text


def _pipeline_name(value: object) -> str:
    name = plain_text(value)
    if not NAME.fullmatch(name.replace("-", "_")):
        raise ValueError(f"{name!r}: expected letters, digits, - and _, a letter first")
    return name


def _json_schema(schema: dict[str, YamlValue]) -> None:
    """Keys that an included file may have do not have to be in this one."""
    schema.pop("required", None)
    schema["properties"].update(OF_FILES)
    schema["$schema"] = DRAFT


class PipelineFile(FileModel):
    """A pipeline of Ottla: sources, steps and sinks."""

    model_config = ConfigDict(title="Ottla pipeline", json_schema_extra=_json_schema)

    name: Annotated[str, BeforeValidator(_pipeline_name)] = key(
        "The name of the pipeline: letters, digits, - and _."
    )
    bootstrap: Text = key("host:port of brokers, for sources and sinks that name none.", BOOTSTRAP)
    checkpoint: Text | None = key("The folder of checkpoints; default: ./checkpoints/NAME.", None)
    trigger: Annotated[str, BeforeValidator(_trigger)] = key(
        "once, or the time between batches, as in 5 seconds.", "1 second"
    )
    restart: RestartKeys = key("When a query that failed is started again.", RestartKeys())
    shared_reads: bool = key("Whether one query reads a source for all sinks without state.", True)
    spark: Options = key("Settings of the Spark session.", {})
    lineage: LineageKeys | None = key("OpenLineage events of its runs.", None)
    registry: RegistryKeys | None = key("The schema registry: its address, or a mapping.", None)
    sources: Annotated[dict[str, SourceKeys], IsMapping] = key("Views by name.", {})
    steps: Annotated[list[StepKeys], IsList] = key("Views made of other views, in order.", [])
    sinks: Annotated[list[OneSink], IsList] = key("Where rows go.", [])
    sync_groups: GroupSyncKeys | None = key("For a mirror: groups that can continue.", None)


class FileReading(NamedTuple):
    """A file, as far as it can be read: its pipeline is without the items that are wrong."""

    pipeline: spec.Pipeline
    mistakes: tuple[str, ...]
    wrong_keys: frozenset[str]
    """Keys at the top of the file that are wrong as a whole."""
    left_out: frozenset[str]
    """Views that the pipeline is without."""


def pipeline_of(values: Mapping[str, YamlValue], folder: Path) -> spec.Pipeline:
    """The pipeline of a file's values; UserError with a line for each mistake."""
    reading = read_pipeline(values, folder)
    if reading.mistakes:
        raise UserError("\n".join(reading.mistakes))
    return reading.pipeline


def read_pipeline(
    values: Mapping[str, YamlValue],
    folder: Path,
    unresolved: Mapping[str, str] = MappingProxyType({}),
) -> FileReading:
    """The pipeline of a file's values, and every mistake in them; `unresolved` are those that are
    known of already, by the path of their values."""
    of_keys = [
        (place, line)
        for place, line in mistakes_of(PipelineFile, values)
        if not any(re.match(rf"{re.escape(path)}(?!\w)", line) for path in unresolved)
    ]
    places = [*map(_place, unresolved), *(place for place, _ in of_keys)]
    wrong_keys = {str(place[0]) for place in places if place[0] not in ITEMS or not place[1:]}
    wrong_items = {place[:2] for place in places}
    items = {name: _items(values.get(name)) for name in ITEMS if name not in wrong_keys}
    right_items = {
        name: {place: item for place, item in all_of.items() if (name, place) not in wrong_items}
        for name, all_of in items.items()
    }
    file = _file_of(values, wrong_keys, right_items)
    mistakes = Mistakes()
    mistakes.lines += [*unresolved.values(), *(line for _, line in of_keys)]
    pipeline = _convert(file, folder, right_items, mistakes)
    for name, advice in NEEDED.items():
        if name not in wrong_keys and not items[name]:
            mistakes.lines.append(f"{name}: expected at least one{advice}")
    right = {view.name for view in (*pipeline.sources, *pipeline.files, *pipeline.steps)}
    steps = [item for item in items.get("steps", {}).values() if isinstance(item, Mapping)]
    declared = [*items.get("sources", ()), *(step.get("name") for step in steps)]
    left_out = frozenset(str(name) for name in declared if name not in right)
    if wrong_keys.isdisjoint(ITEMS):  # otherwise it is not known which views there are
        mistakes.lines += _name_mistakes(pipeline, sorted(left_out))
    return FileReading(pipeline, tuple(mistakes.lines), frozenset(wrong_keys), left_out)


def _file_of(
    values: Mapping[str, YamlValue],
    wrong_keys: Collection[str],
    items: Mapping[str, Mapping[int | str, YamlValue]],
) -> PipelineFile:
    """The model of what is right."""
    rest = {name: value for name, value in values.items() if name not in {*wrong_keys, *ITEMS}}
    for name, right in items.items():
        rest[name] = right if name == "sources" else [*right.values()]
    unknown = {"name": UNNAMED} | ({"registry": UNNAMED} if "registry" in wrong_keys else {})
    return model_of(PipelineFile, {**unknown, **rest})


def _items(items: YamlValue) -> dict[int | str, YamlValue]:
    return dict(items) if isinstance(items, Mapping) else dict(enumerate(items or ()))


def _place(path: str) -> Place:
    """Of `sinks[0].name`: the key and the item."""
    return tuple(int(part) if part.isdecimal() else part for part in re.findall(r"[^.\[\]]+", path))


def _convert(
    file: PipelineFile,
    folder: Path,
    items: Mapping[str, Mapping[int | str, YamlValue]],
    mistakes: Mistakes,
) -> spec.Pipeline:
    """What the models say, without what is wrong with schemas and options: that is a mistake at the
    place of the item in the file."""
    defaults = Defaults(file.name, file.bootstrap, folder, file.registry)
    sources: list[spec.Source] = []
    files: list[spec.FileSource | spec.DatabaseSource] = []
    for name, source in file.sources.items():
        with mistakes.collected("sources", name):
            if isinstance(source, FileSourceKeys | DatabaseSourceKeys):
                files.append(source.source(name, defaults))
            elif isinstance(source, TopicSourceKeys):
                sources.append(source.source(name, defaults))
    steps: list[spec.Step] = []
    for number, step in zip(items.get("steps", ()), file.steps, strict=True):
        with mistakes.collected("steps", number):
            steps.append(step.step(folder))
    sinks: list[spec.Sink] = []
    for number, sink in zip(items.get("sinks", ()), file.sinks, strict=True):
        with mistakes.collected("sinks", number):
            sinks.append(sink.sink(defaults))
    return spec.Pipeline(
        file.name,
        file.bootstrap,
        file.checkpoint or f"./checkpoints/{file.name}",
        file.trigger,
        tuple(sources),
        tuple(steps),
        tuple(sinks),
        file.spark,
        _group_sync(file),
        RestartPolicy(file.restart.attempts, file.restart.backoff, file.restart.backoff_max),
        tuple(files),
        _lineage(file.lineage),
        file.shared_reads,
    )


def _lineage(keys: LineageKeys | None) -> spec.Lineage | None:
    return None if keys is None else spec.Lineage(keys.namespace, keys.transport)


def _group_sync(file: PipelineFile) -> spec.GroupSync | None:
    keys = file.sync_groups
    if keys is None:
        return None
    return spec.GroupSync(keys.origin or file.bootstrap, keys.target, keys.groups, keys.every)


def _name_mistakes(pipeline: spec.Pipeline, left_out: Sequence[str]) -> list[str]:
    """`left_out` are views that may be read, though they are wrong otherwise."""
    mistakes: list[str] = []
    views = dict.fromkeys(left_out)
    for view in (*pipeline.sources, *pipeline.files, *pipeline.steps):
        mistakes += _mistakes_of_name(view.name, views)
        read: tuple[str, ...] = ()
        if isinstance(view, spec.RejectStep | spec.DeduplicateStep):
            read = (view.source,)
        elif isinstance(view, spec.PythonStep):
            read = view.sources
        mistakes += _view_mistakes(f"step {view.name}", read, views)
        views[view.name] = None
    sinks: dict[str, None] = {}
    for sink in pipeline.sinks:
        mistakes += _mistakes_of_name(sink.name, sinks)
        sinks[sink.name] = None
        mistakes += _view_mistakes(f"sink {sink.name}", (sink.source,), views)
    return mistakes


def _mistakes_of_name(name: str, taken: Iterable[str]) -> list[str]:
    if not NAME.fullmatch(name):
        return [f"{name!r}: expected a name of letters, digits and _, a letter first"]
    if name in taken:
        return [f"{name}: used for more than one view or sink; names must be unique"]
    return []


def _view_mistakes(user: str, read: Iterable[str], views: Iterable[str]) -> list[str]:
    return [
        f"{user}: from: there is no view {view!r}; expected one of {', '.join(views)}"
        for view in read
        if view not in views
    ]
