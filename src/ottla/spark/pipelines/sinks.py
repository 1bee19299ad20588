"""What a file says of its sinks: which view, and where its rows go.

Owns: the ways to write a target, short ones included. Never: opens what it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.spark.options import sink as options_of_sink
from ottla.spark.parsed_options import parse_duration_ms
from ottla.spark.pipelines.lake.schema_policy import POLICIES
from ottla.spark.pipelines.spec import (
    ConsoleTarget,
    FilesTarget,
    Sink,
    TableTarget,
    Target,
    TopicTarget,
)
from ottla.spark.pipelines.yaml_node import Node

MODES: Final = ("append", "update", "complete")
FILES: Final = ("parquet", "csv", "json")
TARGETS: Final = ("topic", *FILES, "delta", "iceberg", "console")


def sink(node: Node, bootstrap: str) -> Sink:
    kind = node.one_of(TARGETS)
    made = Sink(
        node.text("name"),
        node.text("from"),
        _target(kind, node, bootstrap),
        node.choice("mode", MODES, "append"),
    )
    if made.mode != "append" and not _takes_changes(made.target):
        node.fail("mode", f"{made.mode!r}: not supported by this sink; expected append")
    node.done()
    return made


def _takes_changes(target: Target) -> bool:
    """Whether rows may come again with another content."""
    return not isinstance(target, FilesTarget) and (
        not isinstance(target, TableTarget) or bool(target.keys)
    )


def _target(kind: str, node: Node, bootstrap: str) -> Target:
    inner = Node(_words(node, kind), node.at(kind))
    made: Target
    if kind == "topic":
        made = _topic(inner, bootstrap)
    elif kind in FILES:
        made = FilesTarget(
            inner.text("path"), inner.texts("partition_by"), kind, inner.table("options")
        )
    elif kind in ("delta", "iceberg"):
        made = _table(kind, inner)
    else:
        made = ConsoleTarget(inner.number("rows", 20, least=1))
    inner.done()
    return made


def _table(kind: str, node: Node) -> TableTarget:
    target = TableTarget(
        kind,
        node.text("path"),
        node.text("table") if kind == "iceberg" else "",
        node.texts("upsert_by"),
        node.table("catalog") if kind == "iceberg" else {},
        schema=node.choice("schema", POLICIES, "strict"),
        partition_by=node.texts("partition_by"),
        delete_when=node.maybe("delete_when"),
        order_by=node.maybe("order_by"),
        compact_every=node.number("compact_every", 0) if kind == "delta" else 0,
        vacuum_hours=_vacuum_hours(node) if kind == "delta" else None,
    )
    for name, value in (("delete_when", target.delete_when), ("order_by", target.order_by)):
        if value is not None and not target.keys:
            node.fail(name, "requires upsert_by: the key whose row is meant")
    if target.vacuum_hours is not None and not target.compact_every:
        node.fail("vacuum_after", "requires compact_every: after how many batches it is done")
    return target


def _vacuum_hours(node: Node) -> int | None:
    text = node.maybe("vacuum_after")
    if text is None:
        return None
    hours = parse_duration_ms(node.at("vacuum_after"), text) // 3_600_000
    if hours < 1:
        node.fail("vacuum_after", f"{text!r}: expected at least 1h; files of running batches stay")
    return hours


def _topic(node: Node, bootstrap: str) -> TopicTarget:
    which = node.one_of(("name", "name_of"))
    headers = node.raw("headers")
    options = node.table("options")
    servers = {"kafka.bootstrap.servers": node.text("bootstrap", bootstrap)}
    node.check("options", lambda: options_of_sink({**servers, **options}))
    return TopicTarget(
        servers["kafka.bootstrap.servers"],
        topic=node.text("name") if which == "name" else None,
        topic_of=node.text("name_of") if which == "name_of" else None,
        key=node.maybe("key"),
        value=node.text("value", "json"),
        headers=headers if isinstance(headers, str) else node.table("headers"),
        partition=node.maybe("partition"),
        options=options,
    )


def _words(node: Node, kind: str) -> Mapping[str, Any]:
    """A target may be written short: `topic: clean-views`, `parquet: ./lake/views`, `console:`."""
    short = {"topic": "name", "delta": "path", **dict.fromkeys(FILES, "path")}.get(kind)
    value = node.raw(kind)
    if kind == "console" and value is None:
        return {}
    return {short: value} if short is not None and isinstance(value, str) else value
