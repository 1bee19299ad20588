"""An Iceberg table, by its name in a catalogue. Its properties say the last batch of each query.

The property is set in the commit that adds the data. Snapshots carry the batch too, for people; an
older version knew batches by them alone, so they are looked at where there is no property.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.upsert_util import create_match_filter

from ottla.spark.pipelines.lake.changes import (
    BATCH,
    DELETED,
    QUERY,
    ParquetFile,
    catalog_beside,
    local,
)
from ottla.spark.pipelines.spec import TableTarget


class IcebergLake:
    def __init__(self, target: TableTarget, query: str) -> None:
        self._target = target
        self._query = query

    def schema(self) -> pa.Schema | None:
        """The table's columns; None if there is no table yet."""
        catalog = self._catalog()
        if not catalog.table_exists(self._target.name):
            return None
        schema: pa.Schema = catalog.load_table(self._target.name).schema().as_arrow()
        return schema

    def has(self, batch: int) -> bool:
        catalog = self._catalog()
        if not catalog.table_exists(self._target.name):
            return False
        table = catalog.load_table(self._target.name)
        last = table.properties.get(self._property)
        if last is not None:
            return int(last) >= batch
        properties = self._snapshot_properties(batch)
        return any(
            properties.items() <= _summary(snapshot).items() for snapshot in table.snapshots()
        )

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """In a commit of its own: columns without rows change nothing for readers."""
        table = self._catalog().load_table(self._target.name)
        with table.update_schema() as update:
            update.union_by_name(pa.schema(fields))

    def add(self, batch: int, files: Sequence[ParquetFile], schema: pa.Schema) -> None:
        table = self._table(schema)
        paths = [f"file://{local(file.path)}" for file in files]
        with table.transaction() as transaction:
            transaction.add_files(paths, snapshot_properties=self._snapshot_properties(batch))
            transaction.set_properties({self._property: str(batch)})

    def merge(self, batch: int, rows: pa.Table, keys: Sequence[str]) -> None:
        """Rows that are marked as deleted delete their key; the others take its place."""
        matching_keys = create_match_filter(rows, list(keys))
        if DELETED in rows.column_names:
            rows = rows.filter(pc.invert(rows.column(DELETED))).drop_columns([DELETED])
        table = self._table(rows.schema)
        properties = self._snapshot_properties(batch)
        # Not `upsert`: pyiceberg 0.12 fails where a row of the table was written without a column.
        with warnings.catch_warnings(), table.transaction() as transaction:
            warnings.filterwarnings("ignore", "Delete operation did not match")  # all are new
            if table.current_snapshot() is not None:
                transaction.delete(matching_keys, snapshot_properties=properties)
            if rows.num_rows:
                transaction.append(rows, snapshot_properties=properties)
            transaction.set_properties({self._property: str(batch)})

    def maintain(self) -> None:
        """Nothing: the file is rejected that asks for it (`sinks`)."""

    @property
    def _property(self) -> str:
        return f"{BATCH}.{self._query}"

    def _snapshot_properties(self, batch: int) -> dict[str, str]:
        return {QUERY: self._query, BATCH: str(batch)}

    def _table(self, schema: pa.Schema) -> Table:
        name, catalog = self._target.name, self._catalog()
        if not catalog.table_exists(name):
            catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
            location = Path(local(self._target.path)).resolve()
            # One commit: a driver that dies never leaves a table without its partitions.
            with (
                catalog.create_table_transaction(
                    name, schema, location=f"file://{location}"
                ) as transaction,
                transaction.update_spec() as update,
            ):
                for column in self._target.partition_by:
                    update.add_identity(column)
        return catalog.load_table(name)

    def _catalog(self) -> Catalog:
        return load_catalog("ottla", **(self._target.catalog or catalog_beside(self._target.path)))


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties
