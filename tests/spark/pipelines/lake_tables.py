"""What is in a table of a lake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ottla.spark.pipelines.lake.iceberg import IcebergLake
from ottla.spark.pipelines.spec import TableTarget


def target(kind: str, folder: Path, *keys: str, **more: Any) -> TableTarget:
    name = "lake.t" if kind == "iceberg" else ""
    return TableTarget(kind, str(folder / "table"), name, keys, **more)


def whole_rows(target: TableTarget) -> list[dict[str, Any]]:
    if target.kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(target.path).to_pyarrow_table()
    else:
        table = IcebergLake(target, "q")._catalog().load_table(target.name).scan().to_arrow()
    found: list[dict[str, Any]] = table.to_pylist()
    return sorted(found, key=lambda row: str(row["k"]))
