"""Rows in tables of Delta and Iceberg: tasks write Parquet files, the driver commits them.

Owns: the order of a batch: known already? conformed to the table's columns, written, committed. The
commit carries (query, batch), so that a batch that Spark runs again changes nothing. Never: needs a
jar: `deltalake` and `pyiceberg` are Python, loaded by the driver alone.

Files of a batch lie in a folder of their own below the table. If the driver dies between the write
and the commit, the batch runs again into the same folder, over what is there; what was committed
is never written again. Rows that take the place of others are merged by the driver, from the same
files. A batch without rows commits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from ottla.model.errors import UserError
from ottla.spark.pipelines.lake import changes
from ottla.spark.pipelines.lake.changes import ParquetFile
from ottla.spark.pipelines.lake.schema_policy import conform
from ottla.spark.pipelines.spec import TableTarget

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

BatchWriter: TypeAlias = "Callable[[DataFrame, int], None]"
MICROSECONDS: Final = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""Spark's own default is a time in nanoseconds, which tables do not take."""
QUERY_ID: Final = "sql.streaming.queryId"
"""What Spark calls the query, on the thread that runs its batches."""


class LakeTable(Protocol):
    """A table that remembers which batches of a query it has."""

    def schema(self) -> pa.Schema | None: ...

    def has(self, batch: int) -> bool: ...

    def add_columns(self, fields: Sequence[pa.Field]) -> None: ...

    def add(self, batch: int, files: Sequence[ParquetFile], schema: pa.Schema) -> None: ...

    def merge(self, batch: int, rows: pa.Table, keys: Sequence[str]) -> None: ...

    def maintain(self) -> None: ...


def lake_writer(target: TableTarget, name: str = "") -> BatchWriter:
    """Writes one batch of a query into the table, once; `name` is that of the sink where a query
    has several, so that two of them may write one table."""
    _open(target, "")  # what is not installed is said before anything runs

    def write(frame: DataFrame, batch: int) -> None:
        query = f"{_query(frame)}-{name}" if name else _query(frame)
        table = _open(target, query)
        if table.has(batch):
            # Taken all the same: a query with state commits it when the rows have been.
            frame.write.format("noop").mode("overwrite").save()
            return
        frame.sparkSession.conf.set(*MICROSECONDS)
        rows = _conform(changes.own_columns(changes.latest(frame, target)), table, target)
        folder = f"{target.path.rstrip('/')}/data/{query}/{batch}"
        files = changes.write_files(rows, folder, target)
        if not files:
            return
        if target.keys:
            table.merge(batch, changes.read_rows(files, table.schema()), target.keys)
        else:
            table.add(batch, files, changes.arrow_schema(rows))
        if target.compact_every and (batch + 1) % target.compact_every == 0:
            table.maintain()

    return write


def _conform(frame: DataFrame, table: LakeTable, target: TableTarget) -> DataFrame:
    """The batch as the table takes it; adds columns to the table where the policy says so."""
    where = f"{target.kind} table {target.name or target.path}"
    plan = conform(target.schema, changes.arrow_schema(frame), table.schema(), where)
    frame = changes.conform(frame, plan)
    if plan.added:
        fields = changes.arrow_schema(frame)
        table.add_columns([fields.field(name) for name in plan.added])
    return frame


def _query(frame: DataFrame) -> str:
    """Which query's batch this is. A new checkpoint makes a new one, whose batches count afresh."""
    query: str | None = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    if query is None:
        raise UserError("lake tables can only be written by a streaming query")
    return query


def _open(target: TableTarget, query: str) -> LakeTable:
    kind = target.kind
    try:
        if kind == "delta":
            from ottla.spark.pipelines.lake.delta import DeltaLake

            return DeltaLake(target, query)
        from ottla.spark.pipelines.lake.iceberg import IcebergLake

        return IcebergLake(target, query)
    except ImportError:
        raise UserError(
            f"tables of {kind} need a package that is not installed: pip install 'ottla[{kind}]'"
        ) from None
