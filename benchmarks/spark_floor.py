"""What Spark's interface for data sources in Python costs by itself: a source and sink of nothing.

The source yields Arrow batches that were made before the clock started, with the columns and sizes
of a topic's; the sink takes Arrow batches and drops them. What `spark_io` measures of Ottla cannot
be better than this, whatever the code between Spark and the broker does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "timestampType int"
)
BATCH_ROWS: Final = 200_000
"""As many as a batch of a topic's has, in `spark_io`: 32 MB of records or one fetch of 16 MB."""


@cache
def batch(rows: int, size: int, partition: int) -> pa.RecordBatch:
    """Rows of a topic with values of one size and no keys; made once in each process."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(
        [
            pa.nulls(rows, pa.binary()),
            pa.repeat(pa.scalar(bytes(size), pa.binary()), rows),
            pa.repeat(pa.scalar("rows", pa.string()), rows),
            pa.repeat(pa.scalar(partition, pa.int32()), rows),
            pa.array(range(rows), pa.int64()),
            pa.repeat(pa.scalar(0, pa.timestamp("us", "UTC")), rows),
            pa.repeat(pa.scalar(0, pa.int32()), rows),
        ],
        names=[column.split()[0] for column in SCHEMA.split(", ")],
    )


class Reader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._rows = int(options["rows"])
        self._partitions = int(options["partitions"])
        self._size = int(options["size"])

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = self._rows // self._partitions
        while rows:
            some = min(rows, BATCH_ROWS)
            yield batch(some, self._size, partition.value)
            rows -= some


class Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class Ticks(DataSourceStreamReader):
    """A stream of as many rows as a rate gives, each the time at which it was due."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._rate = int(options["rate"])

    def initialOffset(self) -> dict[str, int]:
        return {"at": self._now()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"at": self._now()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition((start["at"], end["at"]))] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        first, end = partition.value
        due_ns = [str(tick * 1_000_000_000 // self._rate).encode() for tick in range(first, end)]
        rows = batch(len(due_ns), 0, 0)
        values = pa.array(due_ns, pa.binary())
        yield rows.set_column(1, "value", values)

    def _now(self) -> int:
        return time.monotonic_ns() * self._rate // 1_000_000_000


class Arrivals(DataSourceStreamArrowWriter):
    """Writes how late each row is to a file: a task's rows are in a line of it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._path = Path(options["path"])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        due = [int(value) for rows in iterator for value in rows.column("value").to_pylist()]
        now_ns = time.monotonic_ns()
        with self._path.open("a") as file:
            file.write("".join(f"{at_ns} {(now_ns - at_ns) / 1e6:.3f}\n" for at_ns in due))
        return WriterCommitMessage()


class Floor(DataSource):
    """`format("floor")`."""

    @classmethod
    def name(cls) -> str:
        return "floor"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return Reader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return Writer()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return Ticks(self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return Arrivals(self.options)
