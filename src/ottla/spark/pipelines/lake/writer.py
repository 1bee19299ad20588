"""Rows in tables of Delta and Iceberg: tasks write Parquet files, the driver commits them.

Owns: the commit, which carries (query, batch), so that a batch that Spark runs again changes
nothing. Never: needs a jar: `deltalake` and `pyiceberg` are Python, loaded by the driver alone.

Files of a batch lie in a folder of their own below the table. If the driver dies between the write
and the commit, the batch runs again into the same folder, over what is there; what was committed
is never written again. Rows that take the place of others are merged by the driver, from the same
files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from urllib.parse import unquote, urlparse

from ottla.model.errors import UserError
from ottla.spark.pipelines.spec import TableTarget

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

BatchWriter: TypeAlias = "Callable[[DataFrame, int], None]"
QUERY: Final = "ottla.query"
BATCH: Final = "ottla.batch"
MICROSECONDS: Final = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""Spark's own default is a time in nanoseconds, which tables do not take."""
QUERY_ID: Final = "sql.streaming.queryId"
"""What Spark calls the query, on the thread that runs its batches."""


class LakeTable(Protocol):
    """A table that remembers which batches of a query it has."""

    def has(self, batch: int) -> bool: ...

    def add(self, batch: int, files: Sequence[str]) -> None: ...

    def merge(self, batch: int, rows: pa.Table, keys: Sequence[str]) -> None: ...


def lake_writer(target: TableTarget) -> BatchWriter:
    """Writes one batch of a query into the table, once."""
    _opened(target, "")  # what is not installed is said before anything runs

    def write(frame: DataFrame, batch: int) -> None:
        query = _query(frame)
        table = _opened(target, query)
        if table.has(batch):
            # Taken all the same: a query with state commits it when the rows have been.
            frame.write.format("noop").mode("overwrite").save()
            return
        frame.sparkSession.conf.set(*MICROSECONDS)
        folder = f"{target.path.rstrip('/')}/data/{query}/{batch}"
        frame.write.mode("overwrite").parquet(folder)
        files = sorted(frame.sparkSession.read.parquet(folder).inputFiles())
        if target.keys:
            table.merge(batch, _rows(files), target.keys)
        else:
            table.add(batch, files)

    return write


def _query(frame: DataFrame) -> str:
    """Which query's batch this is. A new checkpoint makes a new one, whose batches count afresh."""
    told = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    if told is None:
        raise UserError("lake tables can only be written by a streaming query")
    return told


def local(path: str) -> str:
    """A path without the `file:` that Spark puts in front."""
    parts = urlparse(path)
    return unquote(parts.path) if parts.scheme == "file" else path


def _opened(target: TableTarget, query: str) -> LakeTable:
    kind = target.kind
    try:
        if kind == "delta":
            from ottla.spark.pipelines.lake.delta import DeltaLake

            return DeltaLake(target.path, query)
        from ottla.spark.pipelines.lake.iceberg import IcebergLake

        return IcebergLake(target, query)
    except ImportError:
        raise UserError(
            f"tables of {kind} need a package that is not installed: pip install 'ottla[{kind}]'"
        ) from None


def _rows(files: Sequence[str]) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table([local(file) for file in files])


def schema_of(files: Sequence[str]) -> Any:
    """The columns of files that Spark wrote, without what Spark says about them."""
    import pyarrow.parquet as pq

    return pq.read_schema(local(files[0])).remove_metadata()


def catalog_beside(path: str) -> Mapping[str, str]:
    """The catalogue of an Iceberg table for which none was named: a SQLite file beside it."""
    folder = Path(local(path)).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
