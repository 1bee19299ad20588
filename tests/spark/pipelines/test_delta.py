"""Delta's own log remembers which batches of a query are in the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from ottla.spark.pipelines.lake.delta import DeltaLake


def part(folder: Path, name: str, *values: int) -> str:
    """A file as a task of Spark leaves it below the table."""
    path = folder / "t" / "data" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": pa.array(values, pa.int64())}), path)
    return f"file://{path}"


def test_each_query_has_its_own_count_of_batches(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = DeltaLake(path, "q")
    assert not table.has(0)
    table.add(0, [part(tmp_path, "a", 1, 2)])
    table.add(1, [part(tmp_path, "b", 3)])
    again = DeltaLake(path, "q")
    assert [again.has(batch) for batch in (0, 1, 2)] == [True, True, False]
    assert not DeltaLake(path, "other").has(0)
    found = DeltaTable(path).to_pyarrow_table().column("v").to_pylist()
    assert sorted(found) == [1, 2, 3]


def test_merged_rows_take_the_place_of_those_with_their_keys(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = DeltaLake(path, "q")
    table.merge(0, pa.table({"k": ["a", "b"], "v": [1, 2]}), ["k"])
    table.merge(1, pa.table({"k": ["b", "c"], "v": [3, 4]}), ["k"])
    assert table.has(1)
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert sorted((row["k"], row["v"]) for row in rows) == [("a", 1), ("b", 3), ("c", 4)]
