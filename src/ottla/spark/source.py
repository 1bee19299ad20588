"""`format("ottla")`: the data source that Spark is given.

Owns: what Spark asks of a data source, and which reader or writer answers; and the options of
`CREATE TABLE … USING ottla`. Never: does their work. A mistake in an option is an error that names
it, before anything runs.

Readers and writers are imported where they are made: Spark starts a process for each step of a
query, which needs one of them, and imports are most of its CPU time.

Spark 4.3 hands the options of a table to `schema` when the table is created, and none to the
readers and writers of later statements. They travel in the metadata of the first column, which the
catalogue keeps.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from ottla.model.errors import UserError
from ottla.spark import options, rows
from ottla.spark.parsed_options import OF_A_TABLE
from ottla.spark.user_errors import as_user_errors
from ottla.spark.worker_daemon import keep

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.batch_reader import BatchReader
    from ottla.spark.stream_reader import StreamReader
    from ottla.spark.writer import BatchWriter, StreamWriter

FORMAT: Final = "ottla"
PUSHES_FILTERS: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The program that Spark runs to plan a read with filters; without them it runs another."""

KEPT_OPTIONS: Final = "ottla.options"
"""In the metadata of a table's first column."""


class OttlaDataSource(DataSource):
    """Topics as tables and streams, with the options of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str | StructType:
        keep()
        with as_user_errors():
            columns = options.any_source(self.options).columns
        if OF_A_TABLE in self.options:
            return _with_options(columns, self.options)
        return rows.schema(columns)

    def reader(self, schema: StructType) -> BatchReader:
        from ottla.spark.batch_reader import BatchReader, FilteringReader

        keep()
        with as_user_errors():
            given = options.batch_source(self._all_options(schema))
        return (FilteringReader if PUSHES_FILTERS in sys.modules else BatchReader)(given, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        from ottla.spark.writer import BatchWriter

        keep()
        with as_user_errors():
            if overwrite:
                raise UserError('mode("overwrite"): a topic can only be appended to; use "append"')
            given, columns = self._sink(schema)
            return BatchWriter(given, columns, self._begin_job(given))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """`overwrite` is the output mode complete: every batch adds the whole result, as with
        Spark's own connector."""
        from ottla.spark.writer import StreamWriter

        keep()
        with as_user_errors():
            return StreamWriter(*self._sink(schema))

    def _begin_job(self, given: options.SinkOptions) -> str | None:
        """The name of a batch write of its own; one in foreachBatch is part of a query."""
        if given.name is not None or not given.exactly_once:
            return None
        from ottla.spark.sink_steps import begin_job

        return begin_job(given)

    def _sink(self, schema: StructType) -> tuple[options.SinkOptions, rows.SinkColumns]:
        given = options.sink(self._all_options(schema))
        return given, rows.written_columns(schema, given.topic)

    def streamReader(self, schema: StructType) -> StreamReader:
        from ottla.spark.stream_reader import StreamReader

        return StreamReader(self._all_options(schema), schema)

    def _all_options(self, schema: StructType) -> Mapping[str, str]:
        """The options of the statement, put over those of the table, if it is one."""
        kept = next((field.metadata.get(KEPT_OPTIONS) for field in schema.fields), None)
        return self.options if kept is None else {**json.loads(kept), **self.options}


def _with_options(columns: Sequence[str], given: Mapping[str, str]) -> StructType:
    """A table's columns, the first of which carries the options."""
    own = {name: text for name, text in given.items() if f"option.{name}" in given}
    schema = rows.struct(columns)
    schema.fields[0].metadata = {KEPT_OPTIONS: json.dumps(own)}
    return schema
