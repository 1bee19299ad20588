"""A YAML file as a `Pipeline`: names, defaults, and an error that says where the mistake is.

Owns: what a file may say. Never: starts Spark, connects, or looks at what a topic holds; whatever
can be found wrong without that is found here, before anything runs.

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

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.model.errors import UserError
from ottla.spark.options import stream_source
from ottla.spark.parsed_options import parse_duration_ms
from ottla.spark.pipelines.sinks import sink
from ottla.spark.pipelines.spec import (
    DeduplicateStep,
    Format,
    GroupSync,
    Pipeline,
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
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Top(NamedTuple):
    """What a file says of all its parts."""

    name: str
    bootstrap: str


def load(path: Path, sets: Sequence[str] = ()) -> Mapping[str, Any]:
    """The file's words, with those of `--set a.b=c` put over them."""
    import yaml

    try:
        words = yaml.safe_load(_text(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {error}") from None
    if not isinstance(words, dict):
        raise UserError(f"{path}: expected names and values, as in name: page-views")
    for one in sets:
        put(words, one)
    return words


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8") from None


def put(words: dict[str, Any], setting: str) -> None:
    """One `--set a.b=c`: the value at that path, read as YAML would read it."""
    import yaml

    path, separator, text = setting.partition("=")
    if not separator or not path:
        raise UserError(f"--set {setting}: expected name=value, such as trigger=once")
    *parents, last = path.split(".")
    place = words
    for name in parents:
        inner = place.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UserError(f"--set {setting}: {name} holds no names")
        place = inner
    try:
        place[last] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"--set {setting}: not YAML: {error}") from None


def parse(words: Mapping[str, Any], folder: Path = Path()) -> Pipeline:
    """The pipeline that a file describes. Schemas in files are looked for beside it."""
    top = Node(words)
    name = top.text("name")
    if not NAME.fullmatch(name.replace("-", "_")):
        top.fail("name", f"{name!r}: expected letters, digits, - and _, a letter first")
    bootstrap = top.text("bootstrap", BOOTSTRAP)
    told = Top(name, bootstrap)
    sources = tuple(_source(one, node, told, folder) for one, node in top.named("sources"))
    steps = tuple(map(_step, top.items("steps")))
    sinks = tuple(sink(node, bootstrap) for node in top.items("sinks"))
    made = Pipeline(
        name,
        bootstrap,
        top.text("checkpoint", f"./checkpoints/{name}"),
        _trigger(top),
        sources,
        steps,
        sinks,
        top.table("spark"),
        _group_sync(top, bootstrap),
    )
    top.done()
    _check_names(made)
    return made


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
    made = GroupSync(origin, target, node.text("groups", ".*"), every)
    node.done()
    return made


def _source(name: str, node: Node, top: Top, folder: Path) -> Source:
    kind = node.one_of(tuple(SUBSCRIPTIONS))
    options = {
        "kafka.bootstrap.servers": node.text("bootstrap", top.bootstrap),
        SUBSCRIPTIONS[kind]: ",".join(node.texts(kind)),
        "startingOffsets": node.text("from", "earliest"),
        "includeHeaders": "true",
        "kafka.group.id": f"{top.name}-{name}",
        **node.table("options"),
    }
    node.check("options", lambda: stream_source(options))
    made = Source(
        name,
        options,
        _format(node, folder),
        _watermark(node, "watermark"),
        node.maybe("dead_letter"),
    )
    node.done()
    return made


def _format(node: Node, folder: Path) -> Format:
    kind = node.choice("format", FORMATS, "binary")
    message = node.maybe("message") or ""
    if kind in ("string", "binary"):
        if node.has("schema"):
            node.fail("schema", f"values of format {kind} have none")
        return Format(kind)
    schema = node.text("schema")
    if schema.endswith((".json", ".avsc", ".ddl", ".sql", ".desc", ".pb")):
        path = folder / schema
        if not path.is_file():
            node.fail("schema", f"there is no file {path}")
        schema = str(path.resolve()) if kind == "protobuf" else _text(path)
    elif kind == "protobuf":
        node.fail("schema", "expected a file of descriptors (protoc --descriptor_set_out=x.desc)")
    if kind == "protobuf" and not message:
        node.fail("message", "is missing: which message of the descriptors a value is")
    if kind != "protobuf" and message:
        node.fail("message", f"values of format {kind} have none")
    return Format(kind, schema, message)


def _watermark(node: Node, name: str) -> Watermark | None:
    if not node.has(name):
        return None
    inner = node.node(name)
    made = Watermark(inner.text("column"), inner.text("delay"))
    inner.done()
    return made


def _step(node: Node) -> Step:
    name = node.text("name")
    kind = node.one_of(("sql", "reject", "deduplicate"))
    made: Step
    if kind == "sql":
        made = SqlStep(name, node.text("sql"), _watermark(node, "watermark"))
    elif kind == "reject":
        reasons = node.table("reject")
        if not reasons:
            node.fail("reject", "expected a reason and a predicate, as in no user: user IS NULL")
        made = RejectStep(name, node.text("from"), reasons, node.maybe("dead_letter"))
    else:
        keys = node.texts("deduplicate")
        made = DeduplicateStep(name, node.text("from"), keys, _watermark(node, "within"))
    node.done()
    return made


def _check_names(pipeline: Pipeline) -> None:
    if not pipeline.sources:
        raise UserError("sources: expected at least one; see ottla pipeline list-templates")
    if not pipeline.sinks:
        raise UserError("sinks: expected at least one: where the rows go")
    views: dict[str, None] = {}
    for one in (*pipeline.sources, *pipeline.steps):
        _check_name(one.name, views)
        if isinstance(one, RejectStep | DeduplicateStep):
            _check_view(f"step {one.name}", one.source, views)
        views[one.name] = None
    sinks: dict[str, None] = {}
    for each in pipeline.sinks:
        _check_name(each.name, sinks)
        sinks[each.name] = None
        _check_view(f"sink {each.name}", each.source, views)


def _check_name(name: str, taken: Iterable[str]) -> None:
    if not NAME.fullmatch(name):
        raise UserError(f"{name!r}: expected a name of letters, digits and _, a letter first")
    if name in taken:
        raise UserError(f"{name}: two have this name")


def _check_view(who: str, view: str, views: Iterable[str]) -> None:
    if view not in views:
        raise UserError(f"{who}: from: {view!r} is none of {', '.join(views)}")
