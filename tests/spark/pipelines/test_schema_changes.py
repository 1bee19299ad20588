"""A topic whose values get a column, and the lake table that they are landed in."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from ottla.spark import pipelines
from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS
from tests.spark.pipelines.jobs import Sent, Stage
from tests.spark.pipelines.lake_tables import whole_rows

PIPELINE = """
name: land
sources: {{events: {{topic: events, format: json, schema: "{columns}"}}}}
sinks:
  - name: table
    from: events
    {kind}: {{path: "{folder}/table", {name} schema: {policy}}}
restart: never
"""
BEFORE = "k STRING, v INT"
AFTER = "k STRING, v INT, extra STRING"
CHANGED = "k STRING, v STRING, extra STRING"


class Landing:
    """The pipeline, run with other columns or another policy, from the same checkpoint."""

    def __init__(self, stage: Stage, kind: str) -> None:
        self._stage = stage
        self._given = {
            "kind": kind, "name": "table: lake.t," if kind == "iceberg" else "",
            "folder": str(stage.folder),
        }  # fmt: skip

    def run(self, columns: str, policy: str, *values: bytes) -> list[dict[str, object]]:
        """Land these values; all rows of the table, without those of the record."""
        self._stage.send("events", [Sent(value) for value in values])
        text = PIPELINE.format(columns=columns, policy=policy, **self._given)
        folder, path = self._stage.folder, self._stage.folder / "land.yaml"
        more = {"bootstrap": self._stage.servers, "checkpoint": str(folder / "checkpoints")}
        path.write_text(yaml.safe_dump({**yaml.safe_load(text), **more}))
        pipelines.run(path, once=True, spark=self._stage.spark)
        target = self._stage.pipeline(text).sinks[0].target
        return [
            {name: value for name, value in row.items() if not name.startswith("_")}
            for row in whole_rows(target)  # type: ignore[arg-type]
        ]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_new_column_stops_a_strict_sink_and_evolve_adds_it_with_the_rows_that_were_refused(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    with Broker(DEFAULT_SETTINGS) as broker:
        stage = Stage(spark, broker.bootstrap_servers, tmp_path)
        stage.topics("events", partitions=1)
        landing = Landing(stage, kind)
        landed = landing.run(BEFORE, "strict", b'{"k": "a", "v": 1, "extra": "not read"}')
        assert landed == [{"k": "a", "v": 1}]
        with pytest.raises(pipelines.QueryFailed) as failure:
            landing.run(AFTER, "strict", b'{"k": "b", "v": 2, "extra": "x"}')
        said = str(failure.value)
        assert "columns that the table does not have: extra." in said
        assert "set schema: evolve to add them to the table" in said
        assert len(said.splitlines()) == 1
        landed = landing.run(AFTER, "evolve", b'{"k": "c", "v": 3, "extra": "y"}')
        assert landed == [
            {"k": "a", "v": 1, "extra": None},
            {"k": "b", "v": 2, "extra": "x"},
            {"k": "c", "v": 3, "extra": "y"},
        ]
        assert landing.run(AFTER, "strict") == landed, "now the table has the column"
        with pytest.raises(pipelines.QueryFailed, match="v is string, was int32"):
            landing.run(CHANGED, "evolve", b'{"k": "d", "v": "four"}')
        (*before, last) = landing.run(AFTER, "evolve", b'{"k": "e", "v": 5}')
        assert before[:3] == landed
        assert last == {"k": "e", "v": 5, "extra": None}
