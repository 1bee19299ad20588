"""Views become records, files and lines; each batch once."""

from __future__ import annotations

import json

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines.outputs import outputs
from ottla.spark.pipelines.views import Views
from tests.spark.pipelines.jobs import Sent, Stage, headers

SINKS = """
name: shop
sources:
  events: {topic: events, format: json, schema: "user STRING, n INT"}
steps:
  - {name: sums, sql: "SELECT user, sum(n) AS total FROM events GROUP BY user"}
sinks:
"""


def events(stage: Stage, *rows: tuple[str, int]) -> None:
    stage.send("events", [Sent(json.dumps({"user": u, "n": n}).encode(), b"k") for u, n in rows])


def test_a_topic_gets_key_value_headers_topic_and_partition_of_each_row(stage: Stage) -> None:
    stage.topics("events", "all", "to-ann", "to-bob", partitions=2)
    events(stage, ("ann", 1), ("bob", 2))
    made = stage.pipeline(
        SINKS
        + """
  - {name: json, from: events, topic: {name: all, key: user, headers: {n: n, kind: "'x'"}}}
  - name: chosen
    from: events
    topic: {name_of: "concat('to-', user)", key: _key, value: _value, partition: 1}
"""
    )
    stage.once(made)
    found = {one.key: one for one in stage.read("all")}
    assert json.loads(found[b"ann"].value or b"") == {"user": "ann", "n": 1}
    assert headers(found[b"bob"]) == {"n": "2", "kind": "x"}
    for user, n in (("ann", 1), ("bob", 2)):
        (record,) = stage.read(f"to-{user}")
        assert (record.partition, record.key, record.headers) == (1, b"k", ())
        assert record.value == json.dumps({"user": user, "n": n}).encode()


def test_updates_are_written_once_though_their_batch_runs_again(stage: Stage) -> None:
    stage.topics("events", "totals", partitions=1)
    made = stage.pipeline(SINKS + "  - {name: s, from: sums, topic: totals, mode: update}")
    events(stage, ("ann", 1), ("bob", 2))
    stage.once(made)
    events(stage, ("ann", 10))
    stage.once(made)
    stage.forget_the_last_commit(made, "s")
    stage.once(made)
    found = [json.loads(one.value or b"") for one in stage.read("totals")]
    assert sorted((one["user"], one["total"]) for one in found) == [
        ("ann", 1),
        ("ann", 11),
        ("bob", 2),
    ]


def test_files_lie_by_the_columns_they_are_parted_by_and_a_console_takes_totals(
    stage: Stage,
) -> None:
    stage.topics("events")
    events(stage, ("ann", 1), ("bob", 2), ("bob", 3))
    lake = stage.folder / "lake"
    made = stage.pipeline(
        SINKS
        + f"""
  - {{name: files, from: events, parquet: {{path: "{lake}", partition_by: user}}}}
  - {{name: seen, from: sums, console: {{rows: 3}}, mode: complete}}
"""
    )
    ran = stage.once(made)
    assert {path.name for path in lake.glob("user=*")} == {"user=ann", "user=bob"}
    assert stage.spark.read.parquet(str(lake)).where("user = 'bob'").count() == 2
    assert ran.totals["seen"].rows_in == 3


@pytest.mark.parametrize("wrong", ["{name: t, key: nothing}", "{name: t, value: n +}"])
def test_an_expression_that_spark_does_not_understand_names_its_sink(
    stage: Stage, wrong: str
) -> None:
    made = stage.pipeline(SINKS + f"  - {{name: out, from: events, topic: {wrong}}}")
    with pytest.raises(UserError, match=r"^sink out: topic: "):
        list(outputs(made, Views(stage.spark, made)))
