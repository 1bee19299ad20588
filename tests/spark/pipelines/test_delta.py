"""Delta's own log remembers which batches of a query are in the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from ottla.spark.pipelines.lake.changes import DELETED
from ottla.spark.pipelines.lake.delta import DeltaLake
from ottla.spark.pipelines.spec import TableTarget
from tests.spark.pipelines.parquet_parts import SCHEMA, part


def test_each_query_has_its_own_count_of_batches(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = DeltaLake(TableTarget("delta", path), "q")
    assert not table.has(0)
    table.add(0, [part(tmp_path, "a", 1, 2)], SCHEMA)
    table.add(1, [part(tmp_path, "b", 3)], SCHEMA)
    again = DeltaLake(TableTarget("delta", path), "q")
    assert [again.has(batch) for batch in (0, 1, 2)] == [True, True, False]
    assert not DeltaLake(TableTarget("delta", path), "other").has(0)
    found = DeltaTable(path).to_pyarrow_table().column("v").to_pylist()
    assert sorted(found) == [1, 2, 3]


def test_merged_rows_take_the_place_of_those_with_their_keys(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = DeltaLake(TableTarget("delta", path), "q")
    table.merge(0, pa.table({"k": ["a", "b"], "v": [1, 2]}), ["k"])
    table.merge(1, pa.table({"k": ["b", "c"], "v": [3, 4]}), ["k"])
    assert table.has(1)
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert sorted((row["k"], row["v"]) for row in rows) == [("a", 1), ("b", 3), ("c", 4)]


def test_rows_marked_as_deleted_delete_their_keys_in_the_commit_of_the_others(
    tmp_path: Path,
) -> None:
    table = DeltaLake(TableTarget("delta", str(tmp_path / "t")), "q")
    table.merge(0, pa.table({"k": ["a", "b"], "v": [1, 2], DELETED: [False, False]}), ["k"])
    table.merge(
        1, pa.table({"k": ["a", "b", "c"], "v": [None, 3, 4], DELETED: [True, False, True]}), ["k"]
    )
    found = DeltaTable(str(tmp_path / "t"))
    assert found.to_pyarrow_table().to_pylist() == [{"k": "b", "v": 3}]
    assert found.version() == 2, "created, and two commits"


def test_small_files_are_written_together_and_old_ones_removed(tmp_path: Path) -> None:
    target = TableTarget("delta", str(tmp_path / "t"), vacuum_hours=1)
    table = DeltaLake(target, "q")
    for batch in range(4):
        table.add(batch, [part(tmp_path, f"f{batch}", batch)], SCHEMA)
    table.maintain()
    found = DeltaTable(str(tmp_path / "t"))
    assert len(found.file_uris()) == 1
    assert sorted(found.to_pyarrow_table().column("v").to_pylist()) == [0, 1, 2, 3]
    assert table.has(3), "the last batch is known after the log was rewritten"


def test_files_that_only_older_versions_need_are_removed(tmp_path: Path) -> None:
    table = DeltaLake(TableTarget("delta", str(tmp_path / "t"), vacuum_hours=0), "q")
    for batch in range(3):
        table.add(batch, [part(tmp_path, f"f{batch}", batch)], SCHEMA)
    table.maintain()
    assert list((tmp_path / "t" / "data").glob("f*.parquet")) == []
    found = DeltaTable(str(tmp_path / "t")).to_pyarrow_table().column("v").to_pylist()
    assert sorted(found) == [0, 1, 2]
