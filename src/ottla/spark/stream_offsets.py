"""Where a stream is, and how far its next batch goes: asked of the cluster.

Owns: the offsets of one running query, and the progress that is committed as a group's offsets, so
that every tool that shows a group's lag shows the query's. Never: decides; see `partition_offsets`,
`offsets` and `plan`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future

from pyspark.sql.datasource import InputPartition

from ottla.client.admin.group_offsets import alter_group_offsets
from ottla.client.admin.session import Outcomes, Session
from ottla.config.client import ConsumerConfig
from ottla.model.clock import MonoMs, SystemClock
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.spark import partition_offsets, plan
from ottla.spark.batch_reader import Part
from ottla.spark.connection import Connection, shared_connection
from ottla.spark.offsets import AtOffsets, DataLost, Offsets, losses
from ottla.spark.options import SourceOptions
from ottla.spark.reader import ReadRequest

log = logging.getLogger(__name__)


class StreamOffsets:
    """The offsets of one stream, in the process that plans its batches."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._clock = SystemClock()
        self._target: Offsets | None = None
        self.latest: Offsets | None = None
        self._committed: Offsets = {}
        self._committing: Future[Outcomes[TopicPartition, None]] | None = None
        self._batch_at_ms: MonoMs | None = None
        self._cached: tuple[int, list[TopicPartition]] | None = None

    def initial(self) -> Offsets:
        return self._connection.ask(self._begin)

    def stop_at_latest(self) -> None:
        """The stream ends where its partitions end now."""
        self._target = self._connection.ask(self._now)

    def next_end(self, begin: Offsets, *, everything: bool) -> Offsets:
        """Where the batch after `begin` ends; asked when the one that ended there is done."""
        self._begin_commit(begin)
        if self._target is not None:
            self._end_commit()  # the last question of a query that ends by itself
        return self._connection.ask(lambda session: self._end(session, begin, everything))

    def tasks(self, begin: Offsets, until: Offsets) -> Sequence[InputPartition]:
        """What the tasks of a batch read; DataLost where it is gone."""
        fresh = [tp for tp in until if tp not in begin]
        new: Offsets = {}
        if fresh:
            new = self._connection.ask(
                lambda session: partition_offsets.earliest(session, self._options, fresh)
            )
        self._report(begin, until, new)
        spans = plan.cut(plan.spans({**new, **begin}, until), self._options.cut)
        return [Part(*map(ReadRequest, task)) for task in plan.gather(spans, self._options.cut)]

    def commit(self, offsets: Offsets) -> None:
        """Make progress known."""
        self._begin_commit(offsets)
        self._end_commit()

    def _begin_commit(self, offsets: Offsets) -> None:
        """Commit without waiting: the next batch is planned meanwhile."""
        news = {tp: offset for tp, offset in offsets.items() if self._committed.get(tp) != offset}
        if not news:
            return
        self._end_commit()
        self._committing = self._connection.submit(
            alter_group_offsets(self._connection.session, self._options.group, news)
        )
        self._committed = offsets

    def _end_commit(self) -> None:
        """The checkpoint is what counts: a failure here is only told."""
        committing, self._committing = self._committing, None
        if committing is None:
            return
        try:
            committing.result().all()
        except (KafkaError, OSError) as failure:
            log.warning(
                "cannot commit offsets of group %s, retrying with the next batch: %s",
                self._options.group,
                failure,
            )

    @property
    def _connection(self) -> Connection:
        return shared_connection(ConsumerConfig, self._options.client)

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
        end = self.latest = await self._now(session) if self._target is None else self._target
        limits = self._options.limits
        if everything or limits == plan.Limits():
            return end
        fresh = [tp for tp in end if tp not in begin]
        start = {**await partition_offsets.earliest(session, self._options, fresh), **begin}
        if self._target is None and plan.waits(start, end, limits, self._waited_ms()):
            return begin
        self._batch_at_ms = self._clock.mono_ms()
        if limits.max_offsets is not None:
            end = plan.limit_offsets(start, end, limits.max_offsets)
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
