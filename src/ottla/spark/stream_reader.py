"""`spark.readStream.format("ottla")`: the calls of Spark's micro-batches.

Owns: what Spark asks of a stream, in its words. Never: asks the cluster; `stream_offsets` does, and
is imported when it is first needed: one of the processes in which Spark makes this object only
pickles it for the tasks.

One object of this class lives in a process of the driver as long as the query runs; others are
pickled to the machines that read, and keep nothing between calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.spark.offsets import (
    JsonOffsets,
    Offsets,
    beginning,
    from_json,
    to_json,
    with_beginning,
)
from ottla.spark.options import SourceOptions, stream_source
from ottla.spark.user_errors import as_user_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.spark.stream_offsets import StreamOffsets


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream of one query."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._raw_options = dict(given)
        self._schema = schema
        self._initial: Offsets | None = None

    @cached_property
    def _options(self) -> SourceOptions:
        """Read when Spark asks for the limit, which it does first of all. An error in making the
        reader would be lost: Spark 4.3 stumbles over the reader that is not there."""
        with as_user_errors():
            return stream_source(self._raw_options)

    @cached_property
    def _offsets(self) -> StreamOffsets:
        from ottla.spark.stream_offsets import StreamOffsets

        return StreamOffsets(self._options)

    def initialOffset(self) -> JsonOffsets:
        """Asked for more than once, and always the same as long as this process lives."""
        if self._initial is None:
            with as_user_errors():
                self._initial = self._offsets.initial()
        return to_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark hands this back where the options' limits hold, and another where they do not."""
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        if limits.min_offsets is not None:
            return ReadMinRows(limits.min_offsets)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        with as_user_errors():
            self._offsets.stop_at_latest()

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:
        begin = from_json(start)
        with as_user_errors():
            end = self._offsets.next_end(begin, everything=isinstance(limit, ReadAllAvailable))
        if end == begin:
            return start  # to the letter: Spark compares the text
        return with_beginning(to_json(end), begin) if begin == self._initial else to_json(end)

    def reportLatestOffset(self) -> JsonOffsets | None:
        latest = self._offsets.latest
        return None if latest is None else to_json(latest)

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        if start == end:
            return []
        with as_user_errors():
            return self._offsets.tasks(beginning(end) or from_json(start), from_json(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from ottla.spark.batch_reader import read_part

        return read_part(self._options, partition, self._schema)

    def commit(self, end: JsonOffsets) -> None:
        self._offsets.commit(from_json(end))
