"""A batch is in the table once, whatever happened to its driver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines.lake.iceberg import IcebergLake
from ottla.spark.pipelines.lake.writer import QUERY_ID, BatchWriter, lake_writer
from ottla.spark.pipelines.spec import TableTarget
from tests.spark.pipelines.lake_tables import target, whole_rows

KINDS = ["delta", "iceberg"]


def rows(target: TableTarget) -> list[Any]:
    return sorted((row["k"], row["v"]) for row in whole_rows(target))


def commits(target: TableTarget) -> int:
    """How many commits have changed the table."""
    if target.kind == "delta":
        from deltalake import DeltaTable

        return DeltaTable(target.path).version() + 1
    return len(IcebergLake(target, "q")._catalog().load_table(target.name).snapshots())


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


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_column_is_refused_or_added_and_rows_before_it_are_null(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    strict = target(kind, tmp_path)
    more = spark.createDataFrame([("b", 2, "x")], "k STRING, v BIGINT, extra STRING")
    writer(strict, spark)(frame(spark, a=1), 0)
    with pytest.raises(UserError, match=r"columns that the table does not have: extra"):
        writer(strict, spark)(more, 1)
    writer(target(kind, tmp_path, schema="evolve"), spark)(more, 1)
    writer(strict, spark)(frame(spark, c=3), 2)
    assert whole_rows(strict) == [
        {"k": "a", "v": 1, "extra": None},
        {"k": "b", "v": 2, "extra": "x"},
        {"k": "c", "v": 3, "extra": None},
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_type_is_refused_or_rescued_as_json(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    strict, rescue = target(kind, tmp_path), target(kind, tmp_path, schema="rescue")
    changed = spark.createDataFrame([("b", "many", 7)], "k STRING, v STRING, extra INT")
    writer(strict, spark)(frame(spark, a=1), 0)
    with pytest.raises(UserError, match="v is string, was int64"):
        writer(strict, spark)(changed, 1)
    writer(rescue, spark)(changed, 1)
    writer(rescue, spark)(frame(spark, c=3), 2)
    found = {row["k"]: (row["v"], row["_rescued"]) for row in whole_rows(rescue)}
    assert found["a"] == (1, None)
    assert found["b"][0] is None
    assert json.loads(found["b"][1]) == {"v": "many", "extra": 7}
    assert found["c"] == (3, None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_rows_commits_nothing(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    partitioned = target(kind, tmp_path / "c", partition_by=("k",))
    for where in (target(kind, tmp_path / "a"), target(kind, tmp_path / "b", "k"), partitioned):
        writer(where, spark)(frame(spark, a=1), 0)
        before = commits(where)
        writer(where, spark)(frame(spark, a=1).where("false"), 1)
        assert commits(where) == before
        writer(where, spark)(frame(spark, b=2), 2)
        assert rows(where) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_upserts_of_a_later_run_go_on_after_a_column_was_added(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    where = target(kind, tmp_path, "k", schema="evolve")
    writer(where, spark)(frame(spark, a=1, b=2), 0)
    more = spark.createDataFrame([("b", 3, "x"), ("c", 4, "y")], "k STRING, v BIGINT, extra STRING")
    writer(where, spark)(more, 1)
    writer(where, spark)(more, 1)
    writer(where, spark)(frame(spark, c=5), 2)
    assert whole_rows(where) == [
        {"k": "a", "v": 1, "extra": None},
        {"k": "b", "v": 3, "extra": "x"},
        {"k": "c", "v": 5, "extra": None},
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_of_changes_of_a_key_the_last_counts_and_deletions_delete(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    where = target(kind, tmp_path, "k", delete_when="op = 'd'", order_by="v")

    def changes(*those: tuple[str, int, str]) -> DataFrame:
        return spark.createDataFrame(list(those), "k STRING, v BIGINT, op STRING")

    writer(where, spark)(changes(("a", 1, "c"), ("a", 3, "u"), ("a", 2, "u"), ("b", 4, "c")), 0)
    assert rows(where) == [("a", 3), ("b", 4)]
    writer(where, spark)(changes(("a", 5, "d"), ("b", 6, "d"), ("b", 7, "c"), ("x", 8, "d")), 1)
    assert rows(where) == [("b", 7)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_a_partitioned_table_has_its_rows_by_partition(
    kind: str, keys: tuple[str, ...], spark: SparkSession, tmp_path: Path
) -> None:
    where = target(kind, tmp_path, *keys, partition_by=("day",))
    days = "k STRING, v BIGINT, day STRING"
    writer(where, spark)(spark.createDataFrame([("a", 1, "mon"), ("b", 2, "a/b c")], days), 0)
    writer(where, spark)(spark.createDataFrame([("c", 3, "mon"), ("d", 4, None)], days), 1)
    assert [(row["k"], row["day"]) for row in whole_rows(where)] == [
        ("a", "mon"), ("b", "a/b c"), ("c", "mon"), ("d", None),
    ]  # fmt: skip
    if kind == "delta":
        from deltalake import DeltaTable

        assert DeltaTable(where.path).metadata().partition_columns == ["day"]
    else:
        table = IcebergLake(where, "q")._catalog().load_table(where.name)
        assert [field.name for field in table.spec().fields] == ["day"]


def test_a_query_writes_small_files_together_every_so_many_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    from deltalake import DeltaTable

    where = target("delta", tmp_path, compact_every=2)
    for batch in range(4):
        writer(where, spark)(frame(spark, **{f"k{batch}": batch}).coalesce(1), batch)
        files = len(DeltaTable(where.path).file_uris())
        assert files == (1 if batch % 2 else 1 + (batch > 0)), batch
    writer(where, spark)(frame(spark, again=9), 3)
    assert rows(where) == [("k0", 0), ("k1", 1), ("k2", 2), ("k3", 3)]
