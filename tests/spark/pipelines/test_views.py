"""Steps, on rows that are all there: Spark plans a stream of them the same way."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.dlq.letters import REASON_HEADER, TOPIC_HEADER, letters
from ottla.spark.pipelines.spec import Source
from ottla.spark.pipelines.views import Views
from tests.spark.pipelines.source_rows import records

ROWS = [
    {"user": "a", "n": 1},
    {"user": None, "n": 2},
    {"user": "a", "n": -3},
    {"user": "a", "n": 1},
]


def views(spark: SparkSession, steps: str, rows: list[Any] = ROWS) -> Views:
    words = yaml.safe_load(f"""
        name: test
        sources:
          events:
            {{topic: events, format: json, schema: "user STRING, n INT", dead_letter: dead}}
        steps: {steps}
        sinks: [{{name: out, from: events, console: {{}}}}]
    """)
    values = [json.dumps(row).encode() for row in rows] + [b"?"]

    def read(_: Source) -> DataFrame:
        return records(spark, *values)

    return Views(spark, yaml_file.parse(words), read)


def rows_of(frame: DataFrame, *columns: str) -> list[Any]:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


@pytest.mark.spec("APP-06")
def test_sql_sees_sources_and_steps_by_name(spark: SparkSession) -> None:
    made = views(
        spark,
        """
        - {name: named, sql: SELECT * FROM events WHERE user IS NOT NULL}
        - {name: sums, sql: "SELECT user, sum(n) AS total FROM named GROUP BY user"}
        """,
    )
    assert rows_of(made.frames["sums"], "user", "total") == [("a", -1)]


@pytest.mark.spec("APP-16")
def test_what_is_rejected_is_a_dead_letter_with_reason_and_origin(spark: SparkSession) -> None:
    made = views(
        spark,
        """
        - name: valid
          from: events
          reject: {nobody: user IS NULL, too little: n < 0}
          dead_letter: rejected
        """,
    )
    assert rows_of(made.frames["valid"], "n") == [(1,), (1,)]
    undecoded, rejected = made.dead_letters
    assert (undecoded.name, undecoded.topic) == ("events_dead_letter", "dead")
    assert [row.value for row in letters(undecoded.judged, "shop").collect()] == [b"?"]
    assert (rejected.name, rejected.topic) == ("valid_dead_letter", "rejected")
    found = letters(rejected.judged, "shop").collect()
    told = [{h.key: bytes(h.value).decode() for h in row.headers} for row in found]
    assert sorted(one[REASON_HEADER] for one in told) == ["nobody", "too little"]
    assert {one[TOPIC_HEADER] for one in told} == {"views"}


def test_repeats_of_a_key_are_dropped(spark: SparkSession) -> None:
    made = views(spark, "[{name: once, from: events, deduplicate: [user, n]}]")
    assert rows_of(made.frames["once"], "n") == [(-3,), (1,), (2,)]


@pytest.mark.spec("APP-14", "APP-17")
def test_headers_are_read_and_written_in_sql(spark: SparkSession) -> None:
    made = views(
        spark,
        """
        - name: marked
          sql: SELECT with_header(_headers, 'ttl', CAST(n AS STRING)) AS h FROM events LIMIT 1
        - name: read
          sql: >
            SELECT header(h, 'ttl') AS ttl, header(h, 'none') AS none,
              size(without_header(h, 'ttl')) AS left,
              with_headers(h, map('ttl', '2', 'more', '3')) AS set FROM marked
        - name: told
          sql: SELECT *, header(set, 'ttl') AS two, header(set, 'more') AS three FROM read
        """,
    )
    (row,) = rows_of(made.frames["told"], "ttl", "none", "left", "two", "three")
    assert row == ("1", None, 0, "2", "3")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("[{name: s, sql: SELEC}]", "step s: sql: "),
        ("[{name: s, sql: SELECT nothing FROM events}]", "step s: sql: "),
        ("[{name: s, from: events, reject: {x: nothing > 1}}]", "step s: reject: "),
        ("[{name: s, from: events, deduplicate: nothing}]", "step s: deduplicate: "),
        (
            "[{name: n, sql: SELECT n FROM events}, {name: s, from: n, reject: {x: n > 1}}]",
            "step s: n lacks _key",
        ),
        (
            "[{name: s, sql: SELECT n FROM events, watermark: {column: n, delay: soon}}]",
            "step s: watermark: ",
        ),
    ],
)
def test_what_spark_cannot_plan_names_the_step(spark: SparkSession, steps: str, said: str) -> None:
    with pytest.raises(UserError) as mistake:
        views(spark, steps)
    assert str(mistake.value).startswith(said)
    assert "\n" not in str(mistake.value)


def streamed(spark: SparkSession, within: str) -> Views:
    words = yaml.safe_load(f"""
        name: test
        sources:
          events: {{topic: t, watermark: {{column: _timestamp, delay: 1 hour}}}}
        steps: [{{name: once, from: events, deduplicate: _key{within}}}]
        sinks: [{{name: out, from: once, console: {{}}}}]
    """)

    def read(_: Source) -> DataFrame:
        headers = "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers"
        rows = spark.readStream.format("rate").load()
        return rows.selectExpr(
            "CAST('' AS BINARY) AS key", "CAST('' AS BINARY) AS value", "'t' AS topic",
            "0 AS partition", "value AS offset", "timestamp", "0 AS timestampType", headers,
        )  # fmt: skip

    return Views(spark, yaml_file.parse(words), read)


def test_a_stream_has_one_watermark_and_repeats_are_known_for_its_delay(
    spark: SparkSession,
) -> None:
    plan = streamed(spark, "").frames["once"]._jdf.queryExecution().toString()
    assert "DeduplicateWithinWatermark" in plan
    with pytest.raises(UserError, match="step once: _timestamp already has a watermark"):
        streamed(spark, ", within: {column: _timestamp, delay: 1 hour}")
