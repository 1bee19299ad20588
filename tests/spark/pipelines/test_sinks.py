"""Targets may be written short; what they mean is the same. Mistakes are in `test_file`."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.spark.pipelines.sinks import sink
from ottla.spark.pipelines.spec import ConsoleTarget, FilesTarget, TableTarget, Target, TopicTarget
from ottla.spark.pipelines.yaml_node import Node


@pytest.mark.parametrize(
    ("kind", "short", "long", "meant"),
    [
        ("topic", "t", {"name": "t"}, TopicTarget("b:1", "t")),
        ("parquet", "./p", {"path": "./p"}, FilesTarget("./p")),
        ("delta", "./p", {"path": "./p"}, TableTarget("delta", "./p")),
        ("console", None, {"rows": 20}, ConsoleTarget(20)),
    ],
)
def test_short_and_long_mean_the_same(kind: str, short: Any, long: Any, meant: Target) -> None:
    for words in (short, long):
        made = sink(Node({"name": "a", "from": "v", kind: words}), "b:1")
        assert made.target == meant


def test_headers_are_names_and_expressions_or_one_expression() -> None:
    for headers in ({"kind": "'x'"}, "_headers"):
        words = {"name": "a", "from": "v", "topic": {"name": "t", "headers": headers}}
        made = sink(Node(words), "b:1").target
        assert isinstance(made, TopicTarget)
        assert made.headers == headers
