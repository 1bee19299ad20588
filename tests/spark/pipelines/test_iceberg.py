"""Iceberg's snapshots say which batch of which query they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from ottla.spark.pipelines.lake.iceberg import IcebergLake
from ottla.spark.pipelines.lake.writer import catalog_beside
from ottla.spark.pipelines.spec import TableTarget
from tests.spark.pipelines.test_delta import part


def test_each_query_has_its_own_batches_and_others_find_the_table(tmp_path: Path) -> None:
    target = TableTarget("iceberg", str(tmp_path / "t"), "lake.t")
    table = IcebergLake(target, "q")
    assert not table.has(0)
    table.add(0, [part(tmp_path, "a", 1, 2)])
    table.add(2, [part(tmp_path, "b", 3)])
    assert [IcebergLake(target, "q").has(batch) for batch in (0, 1, 2)] == [True, False, True]
    assert not IcebergLake(target, "other").has(0)
    found = load_catalog("ottla", **catalog_beside(target.path)).load_table("lake.t")
    assert sorted(found.scan().to_arrow().column("v").to_pylist()) == [1, 2, 3]


def test_the_catalogue_may_be_named(tmp_path: Path) -> None:
    where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}"}
    target = TableTarget("iceberg", str(tmp_path / "t"), "lake.t", ("k",), where)
    IcebergLake(target, "q").merge(0, pa.table({"k": ["a"], "v": [1]}), ["k"])
    assert load_catalog("ottla", **where).table_exists("lake.t")
    assert not (tmp_path / "catalog.db").exists()
