"""A Delta table, by its path. Its own log remembers the last batch of each query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, create_table_with_add_actions

from ottla.spark.pipelines.lake.changes import DELETED, ParquetFile, local
from ottla.spark.pipelines.spec import TableTarget

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""What Spark calls the folder of a partition whose value is null."""
SAFE_HOURS: Final = 168


class DeltaLake:
    def __init__(self, target: TableTarget, query: str) -> None:
        self._target = target
        self._path = target.path
        self._query = query

    def schema(self) -> pa.Schema | None:
        """The table's columns; None if there is no table yet."""
        if not DeltaTable.is_deltatable(self._path):
            return None
        return pa.schema(DeltaTable(self._path).schema().to_arrow())

    def has(self, batch: int) -> bool:
        if not DeltaTable.is_deltatable(self._path):
            return False
        last = DeltaTable(self._path).transaction_version(self._query)
        return last is not None and last >= batch

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """In a commit of its own: columns without rows change nothing for readers."""
        added = Schema.from_arrow(pa.schema(fields)).fields
        DeltaTable(self._path).alter.add_columns(added)

    def add(self, batch: int, files: Sequence[ParquetFile], schema: pa.Schema) -> None:
        root = Path(local(self._path)).resolve()
        actions = [_action(file, root, self._target.partition_by) for file in files]
        partition_by = list(self._target.partition_by) or None
        if DeltaTable.is_deltatable(self._path):
            table = DeltaTable(self._path)
            table.create_write_transaction(
                [*actions],
                mode="append",
                schema=table.schema(),
                partition_by=partition_by,
                commit_properties=self._commit_properties(batch),
            )
        else:
            create_table_with_add_actions(
                self._path,
                Schema.from_arrow(schema),
                actions,
                mode="append",
                partition_by=partition_by,
                commit_properties=self._commit_properties(batch),
            )

    def merge(self, batch: int, rows: pa.Table, keys: Sequence[str]) -> None:
        """Rows that are marked as deleted delete their key; the others take its place."""
        columns = [name for name in rows.column_names if name != DELETED]
        schema = Schema.from_arrow(rows.select(columns).schema)
        partition_by = list(self._target.partition_by) or None
        DeltaTable.create(self._path, schema, mode="ignore", partition_by=partition_by)
        same = " AND ".join(f"target.`{key}` = source.`{key}`" for key in keys)
        values = {f"`{name}`": f"source.`{name}`" for name in columns}
        merger = DeltaTable(self._path).merge(
            rows, same, source_alias="source", target_alias="target",
            commit_properties=self._commit_properties(batch),
        )  # fmt: skip
        if DELETED in rows.column_names:
            merger = merger.when_matched_delete(f"source.`{DELETED}`")
            merger = merger.when_not_matched_insert(values, f"NOT source.`{DELETED}`")
        else:
            merger = merger.when_not_matched_insert(values)
        merger.when_matched_update(values).execute()

    def maintain(self) -> None:
        """Write small files together, and remove files that no version within the time needs."""
        table = DeltaTable(self._path)
        table.optimize.compact()
        hours = self._target.vacuum_hours
        if hours is not None:
            table.vacuum(hours, dry_run=False, enforce_retention_duration=hours >= SAFE_HOURS)

    def _commit_properties(self, batch: int) -> CommitProperties:
        return CommitProperties(app_transactions=[Transaction(self._query, batch)])


def _action(file: ParquetFile, root: Path, partition_by: Sequence[str]) -> AddAction:
    path = Path(local(file.path))
    stat = path.stat()
    changed_ms = int(stat.st_mtime * 1000)
    values = _partition_values(path, partition_by)
    statistics = f'{{"numRecords":{file.rows}}}'
    relative = str(path.relative_to(root))
    return AddAction(relative, stat.st_size, values, changed_ms, True, statistics)


def _partition_values(path: Path, partition_by: Sequence[str]) -> dict[str, str | None]:
    """The values that Spark has written into the names of folders."""
    named = dict(part.split("=", 1) for part in path.parts if "=" in part)
    texts = {name: unquote(named[name]) for name in partition_by}
    return {name: None if text == NULL else text for name, text in texts.items()}
