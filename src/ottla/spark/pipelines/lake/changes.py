"""The rows of a batch as a table takes them: conformed, the last of each key, deletions marked.

Owns: what a batch's frame becomes before its files are written, and the files afterwards. Never:
commits to a table (`delta`, `iceberg`), nor decides what may differ (`schema_policy`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlparse

from ottla.spark.pipelines.lake.schema_policy import RESCUED, Conformance
from ottla.spark.pipelines.spec import TableTarget

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

QUERY: Final = "ottla.query"
BATCH: Final = "ottla.batch"
DELETED: Final = "_deleted"
"""Whether a row deletes its key; in no table, only in the files that are merged."""
ORDER: Final = ("_timestamp", "_partition", "_offset")
"""Which of two rows with the same key is the later one, where the target does not say."""
COPY: Final = "_of_"
"""In front of the copy of a column by which Spark makes folders; the column itself stays in the
files, where Iceberg reads a file's partition from."""


class ParquetFile(NamedTuple):
    """A file that a task has written."""

    path: str
    rows: int


def latest(frame: DataFrame, target: TableTarget) -> DataFrame:
    """Of rows with the same key only the last one; the rows that delete are marked."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    if not target.keys:
        return frame
    if target.delete_when is not None:
        marked = F.coalesce(F.expr(target.delete_when), F.lit(False))
        frame = frame.withColumn(DELETED, marked)
    order = [target.order_by] if target.order_by else [c for c in ORDER if c in frame.columns]
    if not order:
        return frame
    newest = Window.partitionBy(*target.keys).orderBy(*(F.col(name).desc() for name in order))
    return frame.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")


def own_columns(frame: DataFrame) -> DataFrame:
    """Without a row's origin."""
    return frame.select(
        *(name for name in frame.columns if not name.startswith("_") or name == DELETED)
    )


def conform(frame: DataFrame, plan: Conformance) -> DataFrame:
    """A batch with the columns and types that its table takes."""
    from pyspark.sql import functions as F

    if plan.rescued:
        rescued = F.to_json(F.struct(*plan.rescued))
        some = F.coalesce(*(F.col(name).cast("string") for name in plan.rescued))
        frame = frame.withColumn(RESCUED, F.when(some.isNotNull(), rescued)).drop(*plan.rescued)
    for name, kind in plan.widened:
        frame = frame.withColumn(name, F.col(name).cast(kind))
    return frame


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """A frame's columns in Arrow's types, without the mark of deletions."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return pa.schema([field.with_nullable(True) for field in schema if field.name != DELETED])


def write_files(frame: DataFrame, folder: str, target: TableTarget) -> list[ParquetFile]:
    """Write a batch's files, over what an attempt before may have left; those with rows."""
    import pyarrow.parquet as pq
    from pyspark.sql import functions as F

    partition_by: Sequence[str] = () if target.keys else target.partition_by
    if partition_by and target.kind == "iceberg":
        copies = {f"{COPY}{name}": F.col(name) for name in partition_by}
        frame, partition_by = frame.withColumns(copies), list(copies)
    writer = frame.write.mode("overwrite")
    (writer.partitionBy(*partition_by) if partition_by else writer).parquet(folder)
    written = frame.sparkSession.read.schema(frame.schema).parquet(folder)  # there may be no file
    paths = sorted(written.inputFiles())
    files = [ParquetFile(path, pq.read_metadata(local(path)).num_rows) for path in paths]
    return [file for file in files if file.rows]


def read_rows(files: Sequence[ParquetFile], table: pa.Schema | None) -> pa.Table:
    """The rows of files, null in the columns that only the table has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = [pq.read_table(local(file.path), partitioning=None) for file in files]
    rows = pa.concat_tables(parts).replace_schema_metadata(None)
    for field in table or ():
        if field.name not in rows.column_names:
            nothing = pa.nulls(rows.num_rows, field.type)
            rows = rows.append_column(field.remove_metadata().with_nullable(True), nothing)
    return rows


def local(path: str) -> str:
    """A path without the `file:` that Spark puts in front."""
    parts = urlparse(path)
    return unquote(parts.path) if parts.scheme == "file" else path


def catalog_beside(path: str) -> Mapping[str, str]:
    """The catalogue of an Iceberg table for which none was named: a SQLite file beside it."""
    folder = Path(local(path)).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
