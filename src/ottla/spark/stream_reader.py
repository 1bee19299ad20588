"""`spark.readStream.format("ottla")`: where a stream is, and how far its next batch goes.

Owns: the calls of Spark's micro-batches, and the progress that is committed as a group's offsets,
so that every tool that shows a group's lag shows the query's. Never: decides; see `positions`,
`offsets` and `plan`.

One object of this class lives in a process of the driver as long as the query runs; others are
pickled to the machines that read, and keep nothing between calls.
"""

from __future__ import annotations

import logging
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

from ottla.client.admin.group_offsets import alter_group_offsets
from ottla.client.admin.session import Session
from ottla.config.client import ConsumerConfig
from ottla.model.clock import MonoMs, SystemClock
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.spark import partition_offsets, plan
from ottla.spark.batch_reader import Part, read_part
from ottla.spark.connection import Connection, shared
from ottla.spark.offsets import (
    AtOffsets,
    DataLost,
    JsonOffsets,
    Offsets,
    beginning,
    from_json,
    losses,
    to_json,
    with_beginning,
)
from ottla.spark.options import SourceOptions, stream_source
from ottla.spark.reader import ReadRequest
from ottla.spark.user_errors import as_user_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream of one query."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(given)
        self._schema = schema
        self._clock = SystemClock()
        self._initial: Offsets | None = None
        self._target: Offsets | None = None
        self._latest: Offsets | None = None
        self._committed: Offsets = {}
        self._batch_at_ms: MonoMs | None = None
        self._cached: tuple[int, list[TopicPartition]] | None = None

    @cached_property
    def _options(self) -> SourceOptions:
        """Read when Spark asks for the limit, which it does first of all. An error in making the
        reader would be lost: Spark 4.3 stumbles over the reader that is not there."""
        with as_user_errors():
            return stream_source(self._given)

    def initialOffset(self) -> JsonOffsets:
        """Asked for more than once, and always the same as long as this process lives."""
        if self._initial is None:
            with as_user_errors():
                self._initial = self._connection.ask(self._begin)
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
            self._target = self._connection.ask(self._now)

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:
        begin = from_json(start)
        self.commit(start)  # Spark asks when the batch that ended there is done
        with as_user_errors():
            end = self._connection.ask(
                lambda session: self._end(session, begin, isinstance(limit, ReadAllAvailable))
            )
        if end == begin:
            return start  # to the letter: Spark compares the text
        return with_beginning(to_json(end), begin) if begin == self._initial else to_json(end)

    def reportLatestOffset(self) -> JsonOffsets | None:
        return None if self._latest is None else to_json(self._latest)

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        if start == end:
            return []
        begin, until = beginning(end) or from_json(start), from_json(end)
        with as_user_errors():
            fresh = [tp for tp in until if tp not in begin]
            new = self._connection.ask(
                lambda session: partition_offsets.earliest(session, self._options, fresh)
            )
            self._report(begin, until, new)
        spans = plan.cut(plan.spans({**new, **begin}, until), self._options.cut)
        return [Part(*map(ReadRequest, task)) for task in plan.gathered(spans, self._options.cut)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_part(self._options, partition, self._schema)

    def commit(self, end: JsonOffsets) -> None:
        """Make progress known. The checkpoint is what counts: a failure here is only told."""
        done = from_json(end)
        news = {tp: offset for tp, offset in done.items() if self._committed.get(tp) != offset}
        if not news:
            return
        try:
            self._connection.ask(
                lambda session: alter_group_offsets(session, self._options.group, news)
            ).all()
        except (KafkaError, OSError) as failure:
            log.warning(
                "cannot commit offsets of group %s, retrying with the next batch: %s",
                self._options.group,
                failure,
            )
        self._committed = done

    @property
    def _connection(self) -> Connection:
        return shared(ConsumerConfig, self._options.client)

    async def _begin(self, session: Session) -> Offsets:
        partitions = await partition_offsets.initial_partitions(session, self._options)
        self._cached = (self._clock.mono_ms(), partitions)
        return await partition_offsets.at(session, self._options, partitions)

    async def _now(self, session: Session) -> Offsets:
        """The latest offsets now, or where the stream ends; deleted partitions are absent."""
        partitions = await self._partitions(session)
        now_ms = self._clock.wall_ms()
        latest = await partition_offsets.latest(session, self._options, partitions, now_ms)
        until = self._options.end
        if not isinstance(until, AtOffsets):
            return latest
        ends = until.offsets
        return {tp: min(offset, ends[tp]) for tp, offset in latest.items() if tp in ends}

    async def _partitions(self, session: Session) -> list[TopicPartition]:
        """The partitions, fetched again after `partition.metadata.cache.ttl.ms`.

        The client waits `retry.backoff.ms` between two fetches of metadata. Spark asks for the
        latest offsets a hundred times a second, and new records must not wait for that.
        """
        now_ms = self._clock.mono_ms()
        cache_ms = max(self._options.partitions_cached_ms, self._connection.config.retry_backoff_ms)
        cached = self._cached
        if cached is None or now_ms - cached[0] >= cache_ms:
            cached = (
                now_ms,
                await partition_offsets.partitions(session, self._options.subscription),
            )
            self._cached = cached
        return cached[1]

    async def _end(self, session: Session, begin: Offsets, everything: bool) -> Offsets:
        end = self._latest = await self._now(session) if self._target is None else self._target
        limits = self._options.limits
        if everything or limits == plan.Limits():
            return end
        fresh = [tp for tp in end if tp not in begin]
        start = {**await partition_offsets.earliest(session, self._options, fresh), **begin}
        if self._target is None and plan.waits(start, end, limits, self._waited_ms()):
            return begin
        self._batch_at_ms = self._clock.mono_ms()
        if limits.max_offsets is not None:
            end = plan.limited(start, end, limits.max_offsets)
        if limits.max_bytes is not None:
            weights = await partition_offsets.bytes_each(session, end)
            end = plan.fewer_bytes(start, end, limits.max_bytes, weights)
        return end

    def _waited_ms(self) -> int | None:
        return None if self._batch_at_ms is None else self._clock.mono_ms() - self._batch_at_ms

    def _report(self, begin: Offsets, until: Offsets, new: Offsets) -> None:
        lost = losses(begin, until, new)
        if lost and self._options.fail_on_data_loss:
            raise DataLost(lost)
        for loss in lost:
            log.warning("data loss: %s; continuing, because failOnDataLoss is false", loss)
