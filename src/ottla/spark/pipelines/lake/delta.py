"""A Delta table, by its path. Its own log remembers the last batch of each query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, create_table_with_add_actions

from ottla.spark.pipelines.lake.writer import local, schema_of


class DeltaLake:
    def __init__(self, path: str, query: str) -> None:
        self._path = path
        self._query = query

    def has(self, batch: int) -> bool:
        if not DeltaTable.is_deltatable(self._path):
            return False
        last = DeltaTable(self._path).transaction_version(self._query)
        return last is not None and last >= batch

    def add(self, batch: int, files: Sequence[str]) -> None:
        root = Path(local(self._path)).resolve()
        actions = [_action(Path(local(file)), root) for file in files]
        schema = Schema.from_arrow(schema_of(files))
        if DeltaTable.is_deltatable(self._path):
            table = DeltaTable(self._path)
            table.create_write_transaction(
                [*actions],
                mode="append",
                schema=schema,
                commit_properties=self._commit_properties(batch),
            )
        else:
            create_table_with_add_actions(
                self._path,
                schema,
                actions,
                mode="append",
                commit_properties=self._commit_properties(batch),
            )

    def merge(self, batch: int, rows: Any, keys: Sequence[str]) -> None:
        DeltaTable.create(self._path, Schema.from_arrow(rows.schema), mode="ignore")
        same = " AND ".join(f"target.`{key}` = source.`{key}`" for key in keys)
        merger = DeltaTable(self._path).merge(
            rows, same, source_alias="source", target_alias="target",
            commit_properties=self._commit_properties(batch),
        )  # fmt: skip
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def _commit_properties(self, batch: int) -> CommitProperties:
        return CommitProperties(app_transactions=[Transaction(self._query, batch)])


def _action(file: Path, root: Path) -> AddAction:
    stat = file.stat()
    changed_ms = int(stat.st_mtime * 1000)
    return AddAction(str(file.relative_to(root)), stat.st_size, {}, changed_ms, True, "{}")
