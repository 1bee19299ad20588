"""Views become records, files and lines; each batch once."""

from __future__ import annotations

import json

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines.dlq.letters import REASON_HEADER
from ottla.spark.pipelines.queries import outputs
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


LETTERS = """
name: shop
sources:
  events: {topic: events, format: string}
steps:
  - name: numbers
    from: events
    reject: {not a number: try_cast(value AS INT) IS NULL}
    dead_letter: dead
sinks:
"""


@pytest.mark.spec("APP-16")
def test_letters_are_written_by_the_query_that_writes_the_view_they_were_refused_from(
    stage: Stage,
) -> None:
    stage.topics("events", "dead", "doubled", partitions=2)
    stage.send("events", [Sent(b"1", b"k"), Sent(b"one", b"l", {"h": "1"}), Sent(None, b"m")])
    made = stage.pipeline(
        LETTERS
        + """
  - name: out
    from: numbers
    topic: {name: doubled, key: "'d'", value: "2 * CAST(value AS INT)", partition: 1}
"""
    )
    ran = stage.once(made)
    assert list(ran.totals) == ["out"]
    (good,) = stage.read("doubled")
    assert (good.key, good.value, good.headers, good.partition) == (b"d", b"2", (), 1)
    letters = {one.key: one for one in stage.read("dead")}
    assert set(letters) == {b"l", b"m"}
    assert (letters[b"l"].value, letters[b"m"].value) == (b"one", None)
    assert headers(letters[b"l"])["h"] == "1"
    assert {headers(one)[REASON_HEADER] for one in letters.values()} == {"not a number"}


@pytest.mark.parametrize(
    "sink",
    [
        "{name: a, from: numbers, topic: {name: t, options: {ottla.exactly.once: 'false'}}}",
        "{name: a, from: numbers, topic: {name: t, bootstrap: 'other:9092'}}",
        "{name: a, from: events, topic: t}",
        "{name: a, from: numbers, console: }",
    ],
)
def test_letters_are_a_query_of_their_own_where_no_sink_can_write_them(
    stage: Stage, sink: str
) -> None:
    made = stage.pipeline("shared_reads: false\n" + LETTERS + f"  - {sink}")
    found = outputs(made, Views(stage.spark, made))
    assert [one.name for one in found] == ["a", "numbers_dead_letter"]


@pytest.mark.parametrize("wrong", ["{name: t, key: nothing}", "{name: t, value: n +}"])
def test_an_expression_that_spark_does_not_understand_names_its_sink(
    stage: Stage, wrong: str
) -> None:
    made = stage.pipeline(SINKS + f"  - {{name: out, from: events, topic: {wrong}}}")
    with pytest.raises(UserError, match=r"^sink out: topic: "):
        list(outputs(made, Views(stage.spark, made)))
