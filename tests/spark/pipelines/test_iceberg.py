"""Iceberg's snapshots say which batch of which query they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from ottla.spark.pipelines.lake.changes import DELETED, catalog_beside
from ottla.spark.pipelines.lake.iceberg import IcebergLake
from ottla.spark.pipelines.spec import TableTarget
from tests.spark.pipelines.parquet_parts import SCHEMA, part


def test_each_query_has_its_own_batches_and_others_find_the_table(tmp_path: Path) -> None:
    target = TableTarget("iceberg", str(tmp_path / "t"), "lake.t")
    table = IcebergLake(target, "q")
    assert not table.has(0)
    table.add(0, [part(tmp_path, "a", 1, 2)], SCHEMA)
    table.add(1, [part(tmp_path, "b", 3)], SCHEMA)
    assert [IcebergLake(target, "q").has(batch) for batch in (0, 1, 2)] == [True, True, False]
    assert not IcebergLake(target, "other").has(0)
    found = load_catalog("ottla", **catalog_beside(target.path)).load_table("lake.t")
    assert sorted(found.scan().to_arrow().column("v").to_pylist()) == [1, 2, 3]


def test_the_catalogue_may_be_named(tmp_path: Path) -> None:
    where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}"}
    target = TableTarget("iceberg", str(tmp_path / "t"), "lake.t", ("k",), where)
    IcebergLake(target, "q").merge(0, pa.table({"k": ["a"], "v": [1]}), ["k"])
    assert load_catalog("ottla", **where).table_exists("lake.t")
    assert not (tmp_path / "catalog.db").exists()


def test_the_last_batch_is_known_when_its_snapshot_has_expired(tmp_path: Path) -> None:
    target = TableTarget("iceberg", str(tmp_path / "t"), "lake.t")
    IcebergLake(target, "q").add(0, [part(tmp_path, "a", 1)], SCHEMA)
    IcebergLake(target, "other").add(0, [part(tmp_path, "b", 2)], SCHEMA)
    table = load_catalog("ottla", **catalog_beside(target.path)).load_table("lake.t")
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    assert len(table.refresh().snapshots()) == 1
    assert IcebergLake(target, "q").has(0)


def test_batches_of_an_earlier_version_are_known_by_their_snapshots(tmp_path: Path) -> None:
    target = TableTarget("iceberg", str(tmp_path / "t"), "lake.t")
    IcebergLake(target, "q").add(3, [part(tmp_path, "a", 1)], SCHEMA)
    table = load_catalog("ottla", **catalog_beside(target.path)).load_table("lake.t")
    with table.transaction() as transaction:
        transaction.remove_properties("ottla.batch.q")
    assert IcebergLake(target, "q").has(3)
    assert not IcebergLake(target, "q").has(2)


def test_rows_marked_as_deleted_delete_their_keys(tmp_path: Path) -> None:
    target = TableTarget("iceberg", str(tmp_path / "t"), "lake.t", ("k",))
    lake = IcebergLake(target, "q")
    lake.merge(0, pa.table({"k": ["a", "b"], "v": [1, 2], DELETED: [False, False]}), ["k"])
    lake.merge(
        1, pa.table({"k": ["a", "b", "c"], "v": [0, 3, 4], DELETED: [True, False, True]}), ["k"]
    )
    found = lake._catalog().load_table("lake.t").scan().to_arrow()
    assert found.to_pylist() == [{"k": "b", "v": 3}]
    assert lake.has(1)


def test_a_table_is_created_with_its_partitions_in_one_commit(tmp_path: Path) -> None:
    target = TableTarget("iceberg", str(tmp_path / "t"), "lake.t", partition_by=("v",))
    table = IcebergLake(target, "q")._table(SCHEMA)
    assert [field.name for field in table.spec().fields] == ["v"]
    assert len(table.metadata.metadata_log) == 0, "no earlier state that a reader could see"
