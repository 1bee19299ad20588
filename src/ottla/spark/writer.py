"""`write` and `writeStream` to `format("ottla")`: what Spark calls, on tasks and on the driver.

Owns: which step each call of Spark is, and what travels between them. Never: keeps state between
calls. Spark makes a writer afresh in each of its processes, so what tasks and driver must both know
comes with the tasks' messages.

The steps are in `sink_steps`, imported where they are taken: one of the processes in which Spark
makes a writer only pickles it for the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.spark.commit_decisions import Sink
from ottla.spark.options import SinkOptions
from ottla.spark.rows import SinkColumns
from ottla.spark.user_errors import as_user_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.exactly_once import StepListener

STREAMING: Final = "0"
"""The name of a query's own sink; those in foreachBatch are named by the option ottla.sink."""
JOB_BATCH: Final = 0


@dataclass(frozen=True)
class Work(WriterCommitMessage):
    """What one task has done, and for whom."""

    records: int = 0
    prepared: PreparedTransaction | None = None
    sink: Sink | None = None
    run: str = ""
    batch: int = JOB_BATCH


class StreamWriter(DataSourceStreamArrowWriter):
    """The sink of a streaming query."""

    def __init__(
        self, options: SinkOptions, columns: SinkColumns, watch: StepListener | None = None
    ) -> None:
        self._options = options
        self._columns = columns
        self._watch = watch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Work:
        from ottla.spark.sink_steps import write_rows

        with as_user_errors():
            return write_rows(self._options, self._columns, iterator, STREAMING, None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        from ottla.spark.sink_steps import settle

        with as_user_errors():
            settle(self._options, messages, self._watch)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        from ottla.spark.sink_steps import unsettle

        unsettle(self._options, messages)


class BatchWriter(DataSourceArrowWriter):
    """The sink of a batch query: all of its rows, or none.

    `job` names it in the ledger. In foreachBatch, with a name of its own, it is a sink of the
    streaming query instead.
    """

    def __init__(self, options: SinkOptions, columns: SinkColumns, job: str | None) -> None:
        self._options = options
        self._columns = columns
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Work:
        from ottla.spark.sink_steps import write_rows

        with as_user_errors():
            return write_rows(self._options, self._columns, iterator, self._options.name, self._job)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from ottla.spark.sink_steps import end_job, settle

        with as_user_errors():
            if self._job is None:
                settle(self._options, messages)
            else:
                end_job(self._options, self._job, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        from ottla.spark.sink_steps import abandon_job, unsettle

        if self._job is None:
            unsettle(self._options, messages)
        else:
            abandon_job(self._options, self._job)
