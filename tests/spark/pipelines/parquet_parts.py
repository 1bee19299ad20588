"""Parquet files as tasks of Spark leave them below a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.spark.pipelines.lake.changes import ParquetFile

SCHEMA = pa.schema([("v", pa.int64())])


def part(folder: Path, name: str, *values: int) -> ParquetFile:
    """A file as a task of Spark leaves it below the table."""
    path = folder / "t" / "data" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": pa.array(values, pa.int64())}), path)
    return ParquetFile(f"file://{path}", len(values))
