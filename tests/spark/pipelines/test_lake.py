"""A batch is in the table once, whatever happened to its driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from ottla.spark.pipelines.lake.iceberg import IcebergLake
from ottla.spark.pipelines.lake.writer import QUERY_ID, BatchWriter, lake_writer
from ottla.spark.pipelines.spec import TableTarget

KINDS = ["delta", "iceberg"]


def target(kind: str, folder: Path, *keys: str) -> TableTarget:
    return TableTarget(kind, str(folder / "table"), "lake.t" if kind == "iceberg" else "", keys)


def rows(target: TableTarget) -> list[Any]:
    if target.kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(target.path).to_pyarrow_table()
    else:
        table = IcebergLake(target, "q")._catalog().load_table(target.name).scan().to_arrow()
    return sorted((row["k"], row["v"]) for row in table.to_pylist())


def writer(where: TableTarget, spark: SparkSession, query: str = "q") -> BatchWriter:
    """A driver that has just begun, at a batch of this query."""
    spark.sparkContext.setLocalProperty(QUERY_ID, query)
    return lake_writer(where)


def frame(spark: SparkSession, **values: int) -> DataFrame:
    return spark.createDataFrame(list(values.items()), "k STRING, v BIGINT")


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_runs_again_adds_nothing(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    where = target(kind, tmp_path)
    write = writer(where, spark)
    write(frame(spark, a=1, b=2), 0)
    write(frame(spark, a=1, b=2), 0)
    writer(where, spark)(frame(spark, a=1, b=2), 0)
    write(frame(spark, c=3), 1)
    writer(where, spark, "other")(frame(spark, d=4), 0)
    assert rows(where) == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_a_batch_that_was_never_committed_are_not_in_the_table(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    where = target(kind, tmp_path)
    writer(where, spark)(frame(spark, a=1), 0)
    frame(spark, lost=9).write.parquet(f"{where.path}/data/q/1")  # as a driver that died then
    assert rows(where) == [("a", 1)]
    writer(where, spark)(frame(spark, b=2), 1)
    assert rows(where) == [("a", 1), ("b", 2)]


@pytest.mark.spec("APP-05")
@pytest.mark.parametrize("kind", KINDS)
def test_with_keys_a_row_takes_the_place_of_the_one_before(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    where = target(kind, tmp_path, "k")
    write = writer(where, spark)
    write(frame(spark, a=1, b=2), 0)
    write(frame(spark, b=3, c=4), 1)
    write(frame(spark, b=3, c=4), 1)
    assert rows(where) == [("a", 1), ("b", 3), ("c", 4)]
