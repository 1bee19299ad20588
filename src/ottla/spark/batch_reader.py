"""`spark.read.format("ottla")`: a range of offsets, settled when the query is planned.

Owns: the order of a batch's planning. Never: decides; offsets are found in `positions`, cut in
`plan`, narrowed by `filters`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.client.admin.session import Session
from ottla.config.client import ConsumerConfig
from ottla.model.errors import UserError
from ottla.spark import partition_offsets, plan, reader
from ottla.spark.connection import shared_connection
from ottla.spark.filters import Bounds, bounds
from ottla.spark.offsets import AtOffsets
from ottla.spark.options import SourceOptions
from ottla.spark.user_errors import as_user_errors
from ottla.spark.worker_daemon import keep

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


class Part(InputPartition):
    """What one task reads; Spark makes one without anything where there is nothing to read."""

    def __init__(self, *wanted: reader.ReadRequest) -> None:
        super().__init__(wanted)


class BatchReader(DataSourceReader):
    """Plain data: it is pickled to the machines that read."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        with as_user_errors():
            connection = shared_connection(ConsumerConfig, self._options.client)
            spans = connection.ask(self._spans)
        wanted = (self._bounds.restrict(span) for span in spans)
        return [Part(each) for each in wanted if each is not None]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_part(self._options, partition, self._schema)

    async def _spans(self, session: Session) -> list[plan.Span]:
        options = self._options
        found = await partition_offsets.initial_partitions(session, options)
        start = await partition_offsets.at(session, options, found)
        end = await partition_offsets.at(session, options, found, end=True)
        if not options.fail_on_data_loss and isinstance(options.end, AtOffsets):
            end = await partition_offsets.end_of_logs(session, options, end)
        for tp in sorted(end):
            if start[tp] > end[tp]:
                raise UserError(
                    f"{options.start_option}: {start[tp]} for {tp} is after {options.end_option}, "
                    f"{end[tp]}"
                )
        return plan.cut(plan.spans(start, end), options.cut)


class FilteringReader(BatchReader):
    """The same, given conditions first. A class of its own because Spark refuses a reader that
    takes filters while `spark.sql.python.filterPushdown.enabled` is false."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._bounds = bounds(filters)
        return filters  # all of them: bounds may be loose, and Spark applies the rest


def read_part(
    options: SourceOptions, partition: InputPartition, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """The Arrow batches of one task."""
    from pyspark.sql.pandas.types import to_arrow_schema

    keep()
    if partition.value is None:
        return
    wanted: tuple[reader.ReadRequest, ...] = partition.value
    with as_user_errors():
        into = to_arrow_schema(schema, timezone="UTC")
        for each in wanted:
            yield from reader.read(options, each, into)
