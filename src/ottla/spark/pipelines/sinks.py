"""What a file says of its sinks: which view, and where its rows go.

Owns: the ways to write a target, short ones included. Never: opens what it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.spark.options import sink as options_of_sink
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
TARGETS: Final = ("topic", "parquet", "delta", "iceberg", "console")


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
    elif kind == "parquet":
        made = FilesTarget(inner.text("path"), inner.texts("partition_by"))
    elif kind == "delta":
        made = TableTarget("delta", inner.text("path"), keys=inner.texts("upsert_by"))
    elif kind == "iceberg":
        made = TableTarget(
            "iceberg",
            inner.text("path"),
            inner.text("table"),
            inner.texts("upsert_by"),
            inner.table("catalog"),
        )
    else:
        made = ConsoleTarget(inner.number("rows", 20, least=1))
    inner.done()
    return made


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
    short = {"topic": "name", "parquet": "path", "delta": "path"}.get(kind)
    value = node.raw(kind)
    if kind == "console" and value is None:
        return {}
    return {short: value} if short is not None and isinstance(value, str) else value
