"""Changes of a database's rows, with deletions and tombstones, from a topic to a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines.queries import outputs
from ottla.spark.pipelines.views import Views
from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS
from tests.spark.pipelines.jobs import Sent, Stage
from tests.spark.pipelines.lake_tables import whole_rows

PIPELINE = """
name: cdc
sources:
  changes: {{topic: changes, format: json, schema: "v INT, op STRING", tombstones: keep}}
steps:
  - name: keyed
    sql: >
      SELECT CAST(_key AS STRING) AS k, v, coalesce(op, 'd') AS op,
        _timestamp, _partition, _offset FROM changes
sinks:
  - name: table
    from: keyed
    {kind}: {{path: {path}, {name} upsert_by: {key}, delete_when: "op = 'd'"}}
"""


def change(key: str, value: str | None) -> Sent:
    return Sent(None if value is None else value.encode(), key.encode())


@pytest.mark.spec("APP-05")
@pytest.mark.parametrize(("kind", "name"), [("delta", ""), ("iceberg", "table: lake.t,")])
def test_the_table_has_the_last_change_of_each_key(
    spark: SparkSession, tmp_path: Path, kind: str, name: str
) -> None:
    with Broker(DEFAULT_SETTINGS) as broker:
        stage = Stage(spark, broker.bootstrap_servers, tmp_path)
        stage.topics("changes")
        text = PIPELINE.format(kind=kind, name=name, path=tmp_path / "table", key="k")
        job = stage.pipeline(text)
        stage.send("changes", [change("a", '{"v": 1}'), change("b", '{"v": 2}')])
        stage.send("changes", [change("a", '{"v": 3, "op": "u"}'), change("c", '{"v": 4}')])
        stage.once(job)
        stage.send("changes", [change("b", None), change("c", '{"op": "d"}')])
        stage.send("changes", [change("c", '{"v": 5, "op": "c"}'), change("d", None)])
        stage.once(job)
        stage.forget_the_last_commit(job, "table")
        stage.once(job)
        wrong = stage.pipeline(text.replace("upsert_by: k", "upsert_by: id"))
        with pytest.raises(UserError, match="sink table: upsert_by: keyed has no column 'id'"):
            list(outputs(wrong, Views(spark, wrong)))
    target = job.sinks[0].target
    found = [(row["k"], row["v"]) for row in whole_rows(target)]  # type: ignore[arg-type]
    assert found == [("a", 3), ("c", 5)]
