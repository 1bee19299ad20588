"""The tests of a pipeline, as a file says them: records in, expected rows out.

Owns: how a value of such a file becomes the bytes of a record; `file_models` has its keys.
Never: starts Spark.

    tests:                                    views.test.yaml, beside views.yaml
      - name: robots are dropped
        given: {views: [{user: ann, url: /}, {user: robot, url: /}, "not JSON"]}
        expect: {named: [{user: ann}]}
        dead_letters: {views: [{value: not JSON}]}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from ottla.model.errors import UserError
from ottla.spark.pipelines.spec import Encoding, Format, Pipeline, Sink, Source, TopicTarget
from ottla.spark.pipelines.variables import YamlValue

SUFFIX: Final = ".test.yaml"
TIMESTAMP: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Of records that have none of their own."""
OWN: Final = ("_key", "_value", "_timestamp", "_headers", "_topic", "_partition")


@dataclass(frozen=True)
class FixtureRecord:
    """A record of a source, before it has an offset."""

    value: bytes | None
    key: bytes | None = None
    timestamp: datetime = TIMESTAMP
    headers: Mapping[str, str] = field(default_factory=dict)
    topic: str = "fixture"
    partition: int = 0


Rows = list[Mapping[str, YamlValue]]


@dataclass(frozen=True)
class PipelineTest:
    """One test: the records of each source, and the rows of some views."""

    name: str
    given: Mapping[str, list[FixtureRecord]]
    expect: Mapping[str, Rows]
    dead_letters: Mapping[str, Rows]
    records: Mapping[str, Rows]


def test_path(path: Path) -> Path:
    """The tests of a pipeline file stand beside it: `views.test.yaml` for `views.yaml`."""
    return path if path.name.endswith(SUFFIX) else path.with_name(path.stem + SUFFIX)


def pipeline_path(path: Path) -> Path:
    """The pipeline file that a file of tests is for; a pipeline file itself."""
    if not path.name.endswith(SUFFIX):
        return path
    return path.with_name(path.name.removesuffix(SUFFIX) + ".yaml")


def parse_tests(
    values: Mapping[str, YamlValue], pipeline: Pipeline, folder: Path
) -> list[PipelineTest]:
    """The tests of a file; UserError with the place of what is wrong, a line for each mistake."""
    from ottla.spark.pipelines.file_models.base import Mistakes, model_of
    from ottla.spark.pipelines.file_models.test_file import TestFile

    file: TestFile = model_of(TestFile, values)
    formats = {source.name: source.format for source in pipeline.sources}
    formats |= {source.name: Format("json", source.schema) for source in pipeline.files}
    views = [*formats, *(step.name for step in pipeline.steps)]
    sinks = [sink.name for sink in pipeline.sinks]
    mistakes = Mistakes()
    tests = []
    for number, test in enumerate(file.tests):
        known = (
            ("given", test.given, [*formats], "source"),
            ("expect", test.expect, views, "view"),
            ("dead_letters", test.dead_letters, views, "view"),
            ("records", test.records, sinks, "sink"),
        )
        for key, values_by_name, names, kind in known:
            for name in values_by_name:
                with mistakes.collected("tests", number, key, name):
                    _check_name(name, names, kind)
        given: dict[str, list[FixtureRecord]] = {}
        for name, items in test.given.items():
            if name in formats:
                with mistakes.collected("tests", number, "given", name):
                    given[name] = _records(items, formats[name], folder)
        with mistakes.collected("tests", number, "expect"):
            if not (test.expect or test.dead_letters or test.records):
                raise UserError("missing: the rows of at least one view")
        tests.append(PipelineTest(test.name, given, test.expect, test.dead_letters, test.records))
    mistakes.report()
    return tests


def _check_name(name: str, known: Sequence[str], kind: str) -> None:
    if name not in known:
        raise UserError(f"no such {kind}; expected one of {', '.join(known)}")


def _records(items: str | list[YamlValue], format: Format, folder: Path) -> list[FixtureRecord]:
    """The records of a source; UserError for a value that cannot be encoded."""
    if isinstance(items, str):
        path = folder / items
        try:
            items = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {path}: {error}") from None
    encode = encoder(format)
    records = []
    for index, item in enumerate(items):
        try:
            records.append(_record(item, encode))
        except Exception as error:
            text = f"[{index}]: not a value of format {format.kind}: {error}"
            raise UserError(text) from None
    return records


def _record(item: YamlValue, encode: Callable[[YamlValue], bytes]) -> FixtureRecord:
    """Text is a value as it stands, nothing a record without a value, a mapping is encoded."""
    if not isinstance(item, Mapping):
        return FixtureRecord(None if item is None else str(item).encode())
    own = {name: item[name] for name in OWN if name in item}
    rest = {name: value for name, value in item.items() if name not in OWN}
    if "_value" in own and rest:
        raise ValueError("either _value or columns")
    if "_value" in own:
        value = None if own["_value"] is None else str(own["_value"]).encode()
    else:
        value = encode(rest)
    return FixtureRecord(
        value,
        None if own.get("_key") is None else str(own["_key"]).encode(),
        timestamp_of(own.get("_timestamp", TIMESTAMP)),
        {str(name): str(text) for name, text in own.get("_headers", {}).items()},
        str(own.get("_topic", "fixture")),
        int(own.get("_partition", 0)),
    )


def without_registry(pipeline: Pipeline) -> Pipeline:
    """The same pipeline, with values that have no schema's number in front, and sinks whose values
    are readable. The registry is asked only for schemas that the file does not have."""
    return replace(
        pipeline,
        sources=tuple(_plain_source(source) for source in pipeline.sources),
        sinks=tuple(_plain_sink(sink) for sink in pipeline.sinks),
    )


def _plain_source(source: Source) -> Source:
    if source.format.registry is None and source.key is None:
        return source
    from ottla.spark.pipelines.decoding.numbered import resolve

    where = f"sources.{source.name}"
    key = None
    if source.key is not None:
        key = replace(resolve(source.key, f"{where}.key"), registry=None)
    format = replace(resolve(source.format, where), registry=None)
    return replace(source, format=format, key=key)


def _plain_sink(sink: Sink) -> Sink:
    target = sink.target
    if not isinstance(target, TopicTarget):
        return sink
    value = (target.value.of or "json") if isinstance(target.value, Encoding) else target.value
    key = target.key.of if isinstance(target.key, Encoding) else target.key
    return replace(sink, target=replace(target, key=key, value=value))


def encoder(format: Format) -> Callable[[YamlValue], bytes]:
    """How a mapping becomes a value of a format."""
    match format.kind:
        case "avro":
            from ottla.spark.pipelines.decoding import avro

            return avro.encoder(format.schema, format.references)
        case "protobuf":
            from ottla.spark.pipelines.decoding import numbered, protobuf

            return protobuf.encoder(numbered.descriptors(format), format.message)
        case _:
            return lambda row: to_json(row).encode()


def to_json(row: YamlValue) -> str:
    return json.dumps(row, default=_plain)


def timestamp_of(value: YamlValue) -> datetime:
    """A time that YAML has read as one, or text; without a zone it is UTC."""
    parsed = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def _plain(value: object) -> str:
    """What YAML reads as a time, as JSON's text for it."""
    if isinstance(value, datetime):
        return timestamp_of(value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not a value of JSON")
