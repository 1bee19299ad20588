"""Files become pipelines, or one line that says what is wrong with them and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ottla.model.errors import UserError
from ottla.spark.pipelines import file_values, yaml_file
from ottla.spark.pipelines.restarts import RestartPolicy
from ottla.spark.pipelines.spec import (
    ConsoleTarget,
    DeduplicateStep,
    FilesTarget,
    Format,
    GroupSync,
    RejectStep,
    SqlStep,
    TableTarget,
    TopicTarget,
    Watermark,
)

GOOD = """
name: page-views
bootstrap: broker:9092
trigger: 5 seconds
spark: {spark.sql.shuffle.partitions: 2}
sources:
  views:
    topic: [views, more-views]
    format: json
    schema: user STRING, at TIMESTAMP
    from: latest
    watermark: {column: at, delay: 1 minute}
    dead_letter: views-dead
    options: {maxOffsetsPerTrigger: 1000}
  raw: {pattern: "a.*", bootstrap: "other:9092"}
steps:
  - {name: named, sql: SELECT user FROM views}
  - {name: good, from: views, reject: {nobody: user IS NULL}, dead_letter: views-dead}
  - {name: once, from: good, deduplicate: user, within: {column: at, delay: 1 hour}}
sinks:
  - {name: a, from: named, topic: clean, mode: update}
  - name: b
    from: raw
    topic: {name_of: _topic, key: _key, value: _value, headers: _headers, partition: _partition}
  - {name: c, from: once, parquet: {path: ./lake, partition_by: [user]}}
  - {name: d, from: once, delta: ./table}
  - {name: e, from: once, iceberg: {path: ./t, table: n.t, upsert_by: user}, mode: update}
  - {name: f, from: once, console: {rows: 5}}
sync_groups: {target: "other:9092", groups: "g.*", every: 5s}
"""


def words(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(GOOD)
    return {**found, **changes}


def test_restarts_are_as_the_file_says() -> None:
    assert yaml_file.parse(words()).restart == RestartPolicy(10, 1_000, 60_000)
    assert yaml_file.parse(words(restart="never")).restart.attempts == 0
    told = {"attempts": 3, "backoff": "2s", "backoff_max": "5m"}
    assert yaml_file.parse(words(restart=told)).restart == RestartPolicy(3, 2_000, 300_000)
    with pytest.raises(UserError, match=r"restart\.tries: unknown key"):
        yaml_file.parse(words(restart={"tries": 3}))
    with pytest.raises(UserError, match=r"restart\.backoff='soon': expected a time"):
        yaml_file.parse(words(restart={"backoff": "soon"}))


def test_a_file_says_all_there_is_to_a_pipeline() -> None:
    made = yaml_file.parse(words())
    assert (made.name, made.trigger) == ("page-views", "5 seconds")
    assert made.checkpoint == "./checkpoints/page-views"
    assert made.spark == {"spark.sql.shuffle.partitions": "2"}
    views, raw = made.sources
    assert views.options == {
        "kafka.bootstrap.servers": "broker:9092",
        "subscribe": "views,more-views",
        "startingOffsets": "latest",
        "includeHeaders": "true",
        "kafka.group.id": "page-views-views",
        "maxOffsetsPerTrigger": "1000",
    }
    assert views.format == Format("json", "user STRING, at TIMESTAMP")
    assert (views.watermark, views.dead_letter) == (Watermark("at", "1 minute"), "views-dead")
    assert raw.options["subscribePattern"] == "a.*"
    assert raw.options["kafka.bootstrap.servers"] == "other:9092"
    assert made.steps == (
        SqlStep("named", "SELECT user FROM views"),
        RejectStep("good", "views", {"nobody": "user IS NULL"}, "views-dead"),
        DeduplicateStep("once", "good", ("user",), Watermark("at", "1 hour")),
    )
    assert [sink.target for sink in made.sinks] == [
        TopicTarget("broker:9092", "clean"),
        TopicTarget("broker:9092", None, "_topic", "_key", "_value", "_headers", "_partition"),
        FilesTarget("./lake", ("user",)),
        TableTarget("delta", "./table"),
        TableTarget("iceberg", "./t", "n.t", ("user",)),
        ConsoleTarget(5),
    ]
    assert made.group_sync == GroupSync("broker:9092", "other:9092", "g.*", 5_000)


def source(**changes: Any) -> dict[str, Any]:
    return {"sources": {"views": {"topic": "t", **changes}}}


def sink(**changes: Any) -> dict[str, Any]:
    return {"sinks": [{"name": "a", "from": "views", **changes}]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, "name: missing"),
        ({"name": "9"}, "name: '9': expected letters"),
        ({"trigger": "often"}, "trigger: 'often': expected once, or a time such as 5 seconds"),
        ({"sources": {}}, "sources: expected at least one"),
        ({"sinks": []}, "sinks: expected at least one"),
        ({"surces": {}}, "surces: unknown key; did you mean sources?"),
        (source(pattern="x"), "sources.views: expected one of topic, pattern, assign, parquet"),
        (source(format="xml"), "sources.views.format: 'xml': expected one of json, avro"),
        (source(format="json"), "sources.views.schema: missing"),
        (source(schema="a INT"), "sources.views.schema: not allowed for format binary"),
        (source(format="avro", schema="no.avsc"), "sources.views.schema: there is no file no.avsc"),
        (source(format="protobuf", schema="x"), "sources.views.schema: expected a file of descr"),
        (source(watermark={"column": "at"}), "sources.views.watermark.delay: missing"),
        (source(topick="x"), "sources.views.topick: unknown key; did you mean"),
        (
            source(options={"maxOffsetsPerTrigger": "few"}),
            "sources.views.options: maxOffsetsPerTrigger='few': expected",
        ),
        (source(options={"max": 1}), "sources.views.options: max: "),
        ({"steps": [{"name": "s"}]}, "steps[0]: expected one of sql, reject, deduplicate"),
        ({"steps": [{"name": "s", "from": "views", "reject": {}}]}, "steps[0].reject: expected a"),
        ({"steps": [{"name": "views", "sql": "x"}]}, "views: used for more than one"),
        ({"steps": [{"name": "a b", "sql": "x"}]}, "'a b': expected a name of letters"),
        (
            {"steps": [{"name": "s", "from": "nowhere", "deduplicate": "x"}]},
            "step s: from: there is no view 'nowhere'; expected one of views, raw",
        ),
        (sink(), "sinks[0]: expected one of topic, parquet, csv, json, delta, iceberg, con"),
        (sink(topic="t", delta="d"), "sinks[0]: expected one of topic"),
        (sink(topic="t", mode="some"), "sinks[0].mode: 'some': expected one of append, update"),
        (sink(parquet="p", mode="update"), "sinks[0].mode: 'update': not supported by this sink"),
        (sink(delta="p", mode="update"), "sinks[0].mode: 'update': not supported by this sink"),
        (sink(topic={"key": "k"}), "sinks[0].topic: expected one of name, name_of; got none"),
        (sink(topic={"name": "t", "keyy": "k"}), "sinks[0].topic.keyy: unknown key"),
        (
            sink(topic={"name": "t", "options": {"kafka.linger.ms": "soon"}}),
            "sinks[0].topic.options: kafka.linger.ms",
        ),
        (sink(console={"rows": "many"}), "sinks[0].console.rows: expected a whole number"),
        (sink(iceberg={"path": "p"}), "sinks[0].iceberg.table: missing"),
        (sink(topic="t") | {"steps": []} | {"sources": {"o": {"topic": "t"}}},
         "sink a: from: there is no view 'views'; expected one of o"),
        ({"sync_groups": {}}, "sync_groups.target: missing"),
        ({"sync_groups": {"target": "x", "every": "soon"}}, "sync_groups.every='soon': expected"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_says_where(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as mistake:
        yaml_file.parse(words(**changes))
    assert str(mistake.value).startswith(said)


def test_a_schema_may_be_a_file_beside_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "user.avsc").write_text('{"type": "record"}')
    given = words(**source(format="avro", schema="user.avsc"), steps=[], **sink(topic="t"))
    assert yaml_file.parse(given, tmp_path).sources[0].format.schema == '{"type": "record"}'


def test_settings_of_the_command_line_stand_over_the_files(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(GOOD)
    found = file_values.load(path, ["trigger=once", "sources.views.from=earliest", "spark.a.b=1"])
    assert found.values["trigger"] == "once"
    assert found.values["sources"]["views"]["from"] == "earliest"
    for wrong in ("trigger", "=x", "trigger.x=1"):
        with pytest.raises(UserError, match="--set"):
            file_values.load(path, [wrong])


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: [", "not YAML"), ("- 1", "expected a YAML mapping"), (None, "No such")],
)
def test_what_is_no_pipeline_file_is_said_so(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "p.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=said):
        file_values.load(path)


def test_a_file_that_is_not_utf_8_is_said_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(UserError, match=r"bad\.yaml: not a text file: byte 9 is not UTF-8"):
        file_values.load(path)
    path.write_bytes(b"name: good\n")
    with pytest.raises(UserError, match="--set a=\\[: not YAML"):
        file_values.load(path, ["a=["])
