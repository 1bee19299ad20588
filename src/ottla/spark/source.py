"""`format("ottla")`: the data source that Spark is given.

Owns: what Spark asks of a data source, and which reader or writer answers. Never: does their work.
A mistake in an option is an error that names it, before anything runs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from ottla.model.errors import UserError
from ottla.spark import options, rows
from ottla.spark.batch_reader import BatchReader, FilteringReader
from ottla.spark.connection import keep
from ottla.spark.stream_reader import StreamReader
from ottla.spark.user_errors import as_user_errors
from ottla.spark.writer import BatchWriter, StreamWriter, begin_job

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT: Final = "ottla"
PUSHES_FILTERS: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The program that Spark runs to plan a read with filters; without them it runs another."""


class OttlaDataSource(DataSource):
    """Topics as tables and streams, with the options of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        keep()
        with as_user_errors():
            return rows.schema(options.any_source(self.options).columns)

    def reader(self, schema: StructType) -> BatchReader:
        keep()
        with as_user_errors():
            given = options.batch_source(self.options)
        return (FilteringReader if PUSHES_FILTERS in sys.modules else BatchReader)(given, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        keep()
        with as_user_errors():
            if overwrite:
                raise UserError('mode("overwrite"): a topic can only be appended to; use "append"')
            given, columns = self._sink(schema)
            inside = given.name is not None
            return BatchWriter(given, columns, None if inside else begin_job(given))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """`overwrite` is the output mode complete: every batch adds the whole result, as with
        Spark's own connector."""
        keep()
        with as_user_errors():
            return StreamWriter(*self._sink(schema))

    def _sink(self, schema: StructType) -> tuple[options.SinkOptions, rows.SinkColumns]:
        given = options.sink(self.options)
        return given, rows.written(schema, given.topic)

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(self.options, schema)
