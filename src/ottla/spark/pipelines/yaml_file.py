"""Parses a YAML file into a `Pipeline`: keys, defaults, and errors that give the place in the file.

Owns: the keys a file may have. Never: starts Spark, connects, or reads a topic; every mistake that
can be detected without that is detected here, before anything runs.

    name: page-views
    bootstrap: localhost:9092
    sources:
      views: {topic: page-views, format: json, schema: "user STRING, url STRING, at TIMESTAMP"}
    steps:
      - {name: named, sql: "SELECT user, url FROM views WHERE user IS NOT NULL"}
    sinks:
      - {name: clean, from: named, topic: {name: clean-views, key: user}}
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.model.errors import UserError
from ottla.spark.options import stream_source
from ottla.spark.parsed_options import parse_duration_ms
from ottla.spark.pipelines.file_values import load, masked_errors, read_text
from ottla.spark.pipelines.restarts import RestartPolicy
from ottla.spark.pipelines.sinks import FILES, sink
from ottla.spark.pipelines.spec import (
    DeduplicateStep,
    FileSource,
    Format,
    GroupSync,
    Pipeline,
    PythonStep,
    RejectStep,
    Source,
    SqlStep,
    Step,
    Watermark,
)
from ottla.spark.pipelines.yaml_node import Node

BOOTSTRAP: Final = "localhost:9092"
FORMATS: Final = ("json", "avro", "protobuf", "string", "binary")
SUBSCRIPTIONS: Final = {"topic": "subscribe", "pattern": "subscribePattern", "assign": "assign"}
TRIGGERS: Final = re.compile(r"once|\d+ (millisecond|second|minute|hour)s?")
PERIOD: Final = re.compile(r"([1-9]\d*) (second|minute|hour)s?")
NEVER: Final = "never"
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Defaults(NamedTuple):
    """What the top of a file sets for all its sources."""

    pipeline: str
    bootstrap: str


def open_pipeline(
    path: Path, overrides: Sequence[str] = (), profile: str | None = None
) -> Pipeline:
    """The pipeline of a file; UserError where the file or a package it needs is at fault."""
    for package in ("yaml", "pyspark"):
        if find_spec(package) is None:
            raise UserError(f"pipelines need {package}: pip install 'ottla[spark]'")
    values, secrets = load(path, overrides, profile)
    with masked_errors(secrets):
        return replace(parse(values, path.parent), secrets=secrets)


def parse(values: Mapping[str, Any], folder: Path = Path()) -> Pipeline:
    """The pipeline that a file describes; paths of schema files are relative to `folder`."""
    top = Node(values)
    name = top.text("name")
    if not NAME.fullmatch(name.replace("-", "_")):
        top.fail("name", f"{name!r}: expected letters, digits, - and _, a letter first")
    bootstrap = top.text("bootstrap", BOOTSTRAP)
    defaults = Defaults(name, bootstrap)
    sources: list[Source] = []
    files: list[FileSource] = []
    for view, node in top.named("sources"):
        kind = node.one_of((*SUBSCRIPTIONS, *FILES))
        if kind in FILES:
            files.append(_file_source(view, node, kind, folder))
        else:
            sources.append(_source(view, node, defaults, folder))
    steps = tuple(_step(node, folder) for node in top.items("steps"))
    sinks = tuple(sink(node, bootstrap) for node in top.items("sinks"))
    pipeline = Pipeline(
        name,
        bootstrap,
        top.text("checkpoint", f"./checkpoints/{name}"),
        _trigger(top),
        tuple(sources),
        steps,
        sinks,
        top.table("spark"),
        _group_sync(top, bootstrap),
        _restart(top),
        tuple(files),
    )
    top.done()
    _check_names(pipeline)
    return pipeline


def _trigger(top: Node) -> str:
    trigger = top.text("trigger", "1 second")
    if not TRIGGERS.fullmatch(trigger):
        top.fail("trigger", f"{trigger!r}: expected once, or a time such as 5 seconds")
    return trigger


def _group_sync(top: Node, bootstrap: str) -> GroupSync | None:
    if not top.has("sync_groups"):
        return None
    node = top.node("sync_groups")
    every = parse_duration_ms(node.at("every"), node.text("every", "10s"))
    origin, target = node.text("origin", bootstrap), node.text("target")
    sync = GroupSync(origin, target, node.text("groups", ".*"), every)
    node.done()
    return sync


def _restart(top: Node) -> RestartPolicy:
    """`restart: never`, or a mapping; absent: the defaults."""
    if top.raw("restart") == NEVER:
        return RestartPolicy(attempts=0)
    if not top.has("restart"):
        return RestartPolicy()
    node, usual = top.node("restart"), RestartPolicy()
    policy = RestartPolicy(
        node.number("attempts", usual.attempts),
        parse_duration_ms(node.at("backoff"), node.text("backoff", f"{usual.backoff_ms}ms")),
        parse_duration_ms(
            node.at("backoff_max"), node.text("backoff_max", f"{usual.backoff_max_ms}ms")
        ),
    )
    node.done()
    return policy


def _source(name: str, node: Node, defaults: Defaults, folder: Path) -> Source:
    kind = node.one_of((*SUBSCRIPTIONS, *FILES))
    options = {
        "kafka.bootstrap.servers": node.text("bootstrap", defaults.bootstrap),
        SUBSCRIPTIONS[kind]: ",".join(node.texts(kind)),
        "startingOffsets": node.text("from", "earliest"),
        "includeHeaders": "true",
        "kafka.group.id": f"{defaults.pipeline}-{name}",
        **node.table("options"),
    }
    node.check("options", lambda: stream_source(options))
    source = Source(
        name,
        options,
        _format(node, folder),
        _watermark(node, "watermark"),
        node.maybe("dead_letter"),
    )
    node.done()
    return source


def _file_source(name: str, node: Node, kind: str, folder: Path) -> FileSource:
    schema = node.maybe("schema") or ""
    if schema.endswith((".ddl", ".sql")):
        try:
            schema = read_text(folder / schema)
        except OSError as error:
            node.fail("schema", f"cannot read {folder / schema}: {error.strerror}")
    if not schema and kind != "parquet":
        node.fail("schema", f"missing: {kind} files have no types, as in user STRING, n INT")
    refresh = node.maybe("refresh")
    source = FileSource(
        name,
        kind,
        node.text(kind),
        schema,
        node.table("options"),
        _watermark(node, "watermark"),
        is_table=refresh is not None,
        refresh_ms=None if refresh in (None, NEVER) else _period_ms(node, str(refresh)),
    )
    if source.is_table and source.watermark is not None:
        node.fail("watermark", "not allowed with refresh: a table has no late rows")
    node.done()
    return source


def _period_ms(node: Node, text: str) -> int:
    """`10 minutes`, as triggers are written, or `10m`."""
    match = PERIOD.fullmatch(text)
    if match is None:
        return parse_duration_ms(node.at("refresh"), text)
    unit = {"second": 1_000, "minute": 60_000, "hour": 3_600_000}[match[2]]
    return int(match[1]) * unit


def _format(node: Node, folder: Path) -> Format:
    kind = node.choice("format", FORMATS, "binary")
    message = node.maybe("message") or ""
    if kind in ("string", "binary"):
        if node.has("schema"):
            node.fail("schema", f"not allowed for format {kind}")
        return Format(kind)
    schema = node.text("schema")
    if schema.endswith((".json", ".avsc", ".ddl", ".sql", ".desc", ".pb")):
        path = folder / schema
        if not path.is_file():
            node.fail("schema", f"there is no file {path}")
        try:
            schema = str(path.resolve()) if kind == "protobuf" else read_text(path)
        except OSError as error:
            node.fail("schema", f"cannot read {path}: {error.strerror}")
    elif kind == "protobuf":
        node.fail("schema", "expected a file of descriptors (protoc --descriptor_set_out=x.desc)")
    if kind == "protobuf" and not message:
        node.fail("message", "missing: name the message type of the values, as in shop.View")
    if kind != "protobuf" and message:
        node.fail("message", f"not allowed for format {kind}")
    tombstones = node.choice("tombstones", ("refuse", "keep"), "refuse") == "keep"
    return Format(kind, schema, message, tombstones)


def _watermark(node: Node, name: str) -> Watermark | None:
    if not node.has(name):
        return None
    inner = node.node(name)
    watermark = Watermark(inner.text("column"), inner.text("delay"))
    inner.done()
    return watermark


def _step(node: Node, folder: Path) -> Step:
    name = node.text("name")
    kind = node.one_of(("sql", "reject", "deduplicate", "python"))
    step: Step
    if kind == "sql":
        step = SqlStep(name, node.text("sql"), _watermark(node, "watermark"))
    elif kind == "reject":
        reasons = node.table("reject")
        if not reasons:
            node.fail("reject", "expected a reason and a predicate, as in no user: user IS NULL")
        step = RejectStep(name, node.text("from"), reasons, node.maybe("dead_letter"))
    elif kind == "python":
        step = _python_step(name, node, folder)
    else:
        keys = node.texts("deduplicate")
        step = DeduplicateStep(name, node.text("from"), keys, _watermark(node, "within"))
    node.done()
    return step


def _python_step(name: str, node: Node, folder: Path) -> PythonStep:
    """`python: steps.py:clean`; the file is parsed, but not run."""
    file, separator, function = node.text("python").rpartition(":")
    if not separator or not file.endswith(".py") or not function.isidentifier():
        node.fail("python", "expected a file and a function of it, as in steps.py:clean")
    path = (folder / file).resolve()
    try:
        ast.parse(read_text(path))
    except OSError as error:
        node.fail("python", f"{path}: {error.strerror}")
    except SyntaxError as error:
        node.fail("python", f"{path}, line {error.lineno}: {error.msg}")
    sources = node.texts("from")
    if not sources:
        node.fail("from", "missing: the view, or the list of views, that the function is given")
    arguments = node.raw("arguments") or {}
    if not isinstance(arguments, Mapping) or not all(map(str.isidentifier, map(str, arguments))):
        node.fail("arguments", "expected a mapping of parameter names and values")
    return PythonStep(name, sources, path, function, arguments)


def _check_names(pipeline: Pipeline) -> None:
    if not pipeline.sources and not pipeline.files:
        raise UserError("sources: expected at least one; see ottla pipeline list-templates")
    if not pipeline.sinks:
        raise UserError("sinks: expected at least one: where the rows go")
    views: dict[str, None] = {}
    for view in (*pipeline.sources, *pipeline.files, *pipeline.steps):
        _check_name(view.name, views)
        if isinstance(view, RejectStep | DeduplicateStep):
            _check_view(f"step {view.name}", view.source, views)
        if isinstance(view, PythonStep):
            for source in view.sources:
                _check_view(f"step {view.name}", source, views)
        views[view.name] = None
    sinks: dict[str, None] = {}
    for target in pipeline.sinks:
        _check_name(target.name, sinks)
        sinks[target.name] = None
        _check_view(f"sink {target.name}", target.source, views)


def _check_name(name: str, taken: Iterable[str]) -> None:
    if not NAME.fullmatch(name):
        raise UserError(f"{name!r}: expected a name of letters, digits and _, a letter first")
    if name in taken:
        raise UserError(f"{name}: used for more than one view or sink; names must be unique")


def _check_view(user: str, view: str, views: Iterable[str]) -> None:
    if view not in views:
        raise UserError(
            f"{user}: from: there is no view {view!r}; expected one of {', '.join(views)}"
        )
