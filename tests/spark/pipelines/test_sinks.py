"""Targets may be written short; what they mean is the same. Mistakes are in `test_yaml_file`."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.spec import ConsoleTarget, FilesTarget, TableTarget, Target, TopicTarget


def target(**words: Any) -> Target:
    """What a sink of a file means."""
    values = {
        "name": "p",
        "bootstrap": "b:1",
        "sources": {"v": {"topic": "t"}},
        "sinks": [{"name": "a", "from": "v", **words}],
    }
    return yaml_file.parse(values).sinks[0].target


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
        assert target(**{kind: words}) == meant


def test_headers_are_names_and_expressions_or_one_expression() -> None:
    for headers in ({"kind": "'x'"}, "_headers"):
        made = target(topic={"name": "t", "headers": headers})
        assert isinstance(made, TopicTarget)
        assert made.headers == headers


def table(kind: str, **words: Any) -> TableTarget:
    made = target(**{kind: {"path": "./p", **words}})
    assert isinstance(made, TableTarget)
    return made


def test_a_table_says_how_it_changes() -> None:
    made = table(
        "delta", schema="evolve", partition_by="day", upsert_by=["k"], delete_when="op = 'd'",
        order_by="at", compact_every=10, vacuum_after="168h",
    )  # fmt: skip
    assert made == TableTarget(
        "delta", "./p", keys=("k",), schema="evolve", partition_by=("day",),
        delete_when="op = 'd'", order_by="at", compact_every=10, vacuum_hours=168,
    )  # fmt: skip
    assert table("iceberg", table="n.t", partition_by=["day"]).partition_by == ("day",)


@pytest.mark.parametrize(
    ("kind", "words", "message"),
    [
        ("delta", {"schema": "loose"}, r"delta\.schema: 'loose': expected one of strict, evolve"),
        ("delta", {"delete_when": "x"}, r"delta\.delete_when: requires upsert_by"),
        ("delta", {"order_by": "x"}, r"delta\.order_by: requires upsert_by"),
        ("delta", {"vacuum_after": "200h"}, r"delta\.vacuum_after: requires compact_every"),
        ("delta", {"vacuum_after": "5m", "compact_every": 1}, "expected at least 1h"),
        ("iceberg", {"table": "n.t", "compact_every": 1}, r"iceberg\.compact_every: unknown key"),
    ],
)
def test_a_mistake_in_a_table_is_named(kind: str, words: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        table(kind, **words)
