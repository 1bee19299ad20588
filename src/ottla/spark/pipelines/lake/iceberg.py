"""An Iceberg table, by its name in a catalogue. Each snapshot says which batch it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog

from ottla.spark.pipelines.lake.writer import BATCH, QUERY, catalog_beside, local, schema_of
from ottla.spark.pipelines.spec import TableTarget


class IcebergLake:
    def __init__(self, target: TableTarget, query: str) -> None:
        self._target = target
        self._query = query

    def has(self, batch: int) -> bool:
        catalog = self._catalog()
        if not catalog.table_exists(self._target.name):
            return False
        properties = self._snapshot_properties(batch)
        snapshots = catalog.load_table(self._target.name).snapshots()
        return any(properties.items() <= _summary(snapshot).items() for snapshot in snapshots)

    def add(self, batch: int, files: Sequence[str]) -> None:
        table = self._table(schema_of(files))
        paths = [f"file://{local(file)}" for file in files]
        table.add_files(paths, snapshot_properties=self._snapshot_properties(batch))

    def merge(self, batch: int, rows: Any, keys: Sequence[str]) -> None:
        table = self._table(rows.schema.remove_metadata())
        table.upsert(
            rows, join_cols=list(keys), snapshot_properties=self._snapshot_properties(batch)
        )

    def _snapshot_properties(self, batch: int) -> dict[str, str]:
        return {QUERY: self._query, BATCH: str(batch)}

    def _table(self, schema: Any) -> Any:
        name, catalog = self._target.name, self._catalog()
        if not catalog.table_exists(name):
            catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
            location = Path(local(self._target.path)).resolve()
            catalog.create_table(name, schema, location=f"file://{location}")
        return catalog.load_table(name)

    def _catalog(self) -> Any:
        return load_catalog("ottla", **(self._target.catalog or catalog_beside(self._target.path)))


def _summary(snapshot: Any) -> Mapping[str, str]:
    found: Mapping[str, str] = snapshot.summary.additional_properties
    return found
