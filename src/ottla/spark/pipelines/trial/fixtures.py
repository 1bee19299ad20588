"""The tests of a pipeline, as a file says them: records in, expected rows out.

Owns: the keys of such a file, and how a value of it becomes the bytes of a record.
Never: starts Spark.

    tests:                                    views.test.yaml, beside views.yaml
      - name: robots are dropped
        given: {views: [{user: ann, url: /}, {user: robot, url: /}, "not JSON"]}
        expect: {named: [{user: ann}]}
        dead_letters: {views: [{value: not JSON}]}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from ottla.model.errors import UserError
from ottla.spark.pipelines.spec import Format, Pipeline
from ottla.spark.pipelines.yaml_node import Node

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


Rows = list[Mapping[str, Any]]


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


def parse_tests(values: Mapping[str, Any], pipeline: Pipeline, folder: Path) -> list[PipelineTest]:
    """The tests of a file; UserError with the place of what is wrong."""
    top = Node(values)
    tests = [_test(node, pipeline, folder) for node in top.items("tests")]
    top.done()
    if not tests:
        raise UserError("tests: expected at least one, with name, given and expect")
    return tests


def _test(node: Node, pipeline: Pipeline, folder: Path) -> PipelineTest:
    sources = {source.name: source.format for source in pipeline.sources}
    sources |= {source.name: Format("json", source.schema) for source in pipeline.files}
    views = [*sources, *(step.name for step in pipeline.steps)]
    name = node.text("name")
    given = node.node("given")
    records = {
        source: _records(given, source, sources[source], folder)
        for source in _names(given, tuple(sources), "source")
    }
    test = PipelineTest(
        name,
        records,
        _expected(node, "expect", views, "view"),
        _expected(node, "dead_letters", views, "view"),
        _expected(node, "records", [sink.name for sink in pipeline.sinks], "sink"),
    )
    if not (test.expect or test.dead_letters or test.records):
        node.fail("expect", "missing: the rows of at least one view")
    node.done()
    return test


def _names(node: Node, known: tuple[str, ...], kind: str) -> list[str]:
    for name in node.names():
        if name not in known:
            node.fail(name, f"no such {kind}; expected one of {', '.join(known)}")
    return list(node.names())


def _expected(node: Node, key: str, known: list[str], kind: str) -> dict[str, Rows]:
    if not node.has(key):
        return {}
    inner = node.node(key)
    rows: dict[str, Rows] = {}
    for name in _names(inner, tuple(known), kind):
        value = inner.raw(name)
        if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
            inner.fail(name, "expected a list of rows, each a mapping of columns and values")
        rows[name] = value
    return rows


def _records(node: Node, source: str, format: Format, folder: Path) -> list[FixtureRecord]:
    value = node.raw(source)
    if isinstance(value, str):
        path = folder / value
        try:
            value = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            node.fail(source, f"cannot read {path}: {error}")
    if not isinstance(value, list):
        node.fail(source, "expected a list of values, or a file with one value on each line")
    encode = encoder(format)
    records = []
    for index, item in enumerate(value):
        try:
            records.append(_record(item, encode))
        except Exception as error:
            node.fail(f"{source}[{index}]", f"not a value of format {format.kind}: {error}")
    return records


def _record(item: Any, encode: Callable[[Any], bytes]) -> FixtureRecord:
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


def encoder(format: Format) -> Callable[[Any], bytes]:
    """How a mapping becomes a value of a format."""
    match format.kind:
        case "avro":
            from ottla.spark.pipelines.decoding import avro

            return avro.encoder(format.schema)
        case "protobuf":
            from ottla.spark.pipelines.decoding import protobuf

            return protobuf.encoder(Path(format.schema).read_bytes(), format.message)
        case _:
            return lambda row: to_json(row).encode()


def to_json(row: Any) -> str:
    return json.dumps(row, default=_plain)


def timestamp_of(value: Any) -> datetime:
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
