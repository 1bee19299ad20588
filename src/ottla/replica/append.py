"""Produce: append to each partition of the request, then wait as acks requires.

Owns the order of an append's steps and the wait for acks=all. Never decodes a request or encodes
a reply. Hot: benchmarks/small_requests.py.

Appends run inline, on the event loop, straight from the receive buffer. A batch that must be
rewritten first (another codec), or whose records take long to validate, is copied and goes to the
thread pool; until it is appended, later appends to that partition queue behind it, so that the
producer's sequence is kept. The first batch of a transaction waits until the transaction
coordinator has verified the partition, and later batches of that producer wait behind it.
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from ottla.delay.purgatory import Delayed
from ottla.log.log import Origin
from ottla.log.validate import Analysis, RefusedRecords, analyse, rewrite
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import INTERNAL_TOPICS, LeaderEpoch, Offset, TopicPartition
from ottla.model.tuples import new
from ottla.protocol.hot import ProducedPartition
from ottla.protocol.records.header import TRANSACTIONAL_BIT
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition
from ottla.replica.refusals import VerificationFailed, message_for_producer, refused_by_log
from ottla.replica.transaction_verification import (
    TransactionalBatch,
    TransactionVerifier,
    needs_verification,
)

log = logging.getLogger(__name__)

ALL: Final = -1
FLUSH_TIMEOUT_MS: Final = 5_000
"""The request's timeout is for followers; a flush alone may take this long in any case."""
GOOD: Final = ErrorCode.none
PENDING: Final = ProducedPartition(-1)

Outcome: TypeAlias = ProducedPartition
Done: TypeAlias = Callable[[list[Outcome]], None]


class PartitionAppend(NamedTuple):
    """One partition's record set; the records are a view that is valid only during the call."""

    key: TopicPartition
    records: memoryview | bytes | None
    refused: ErrorCode = GOOD
    """An error that the API layer has already found."""


class AppendOptions(NamedTuple):
    """The options of one produce request."""

    acks: int
    timeout_ms: int
    origin: Origin = Origin.CLIENT
    zstd: bool = True
    """Whether the request's version allows zstd."""
    txn: TransactionalBatch | None = None
    """The transaction that the request belongs to, if any."""


class _Wait(NamedTuple):
    """An acks=all append that is not acknowledged yet; `position` is its place in the reply."""

    partition: HostedPartition
    epoch: LeaderEpoch
    required: Offset
    position: int


class _ProduceRequest:
    """One produce request in progress."""

    __slots__ = ("on_done", "options", "outcomes", "unappended", "waits")

    def __init__(self, options: AppendOptions, on_done: Done, count: int) -> None:
        self.options = options
        self.on_done = on_done
        self.unappended = count
        self.outcomes: list[Outcome] = []
        self.waits: list[_Wait] = []

    def refuse(
        self, index: int, key: TopicPartition, refusal: KafkaError, log_start: Offset = -1
    ) -> None:
        errors = refusal.errors if isinstance(refusal, RefusedRecords) else ()
        self.outcomes[index] = ProducedPartition(
            key.partition,
            refusal.code,
            log_start_offset=max(log_start, self.outcomes[index].log_start_offset),
            error_message=message_for_producer(refusal),
            record_errors=errors,
        )


class Appender:
    """Appends batches to the partitions led by this broker."""

    def __init__(self, hosted: HostedPartitions, flushes: FlushLoop) -> None:
        self._hosted = hosted
        self._flushes = flushes
        self._clock = hosted.environment.clock
        self._total = hosted.topic_metrics.all
        self.verifier: TransactionVerifier | None = None
        """Verifies transactions; None until the transaction coordinator runs."""
        self._awaiting_verification: dict[
            tuple[TopicPartition, int], deque[Callable[[], None]]
        ] = {}

    def append(
        self, sets: Sequence[PartitionAppend], options: AppendOptions, on_done: Done
    ) -> None:
        """Call `on_done` once with an outcome for each set, now or when acks is satisfied."""
        if self._hosted.on_first_append is not None:
            self._hosted.announce_first_append()
        work = _ProduceRequest(options, on_done, len(sets))
        outcomes = work.outcomes
        for index, (key, records, refused) in enumerate(sets):
            if refused is GOOD:
                outcomes.append(PENDING)
                self._start(work, index, key, records)
            else:
                outcomes.append(ProducedPartition(key.partition, refused))
                work.unappended -= 1
        self._total.total_produce_requests.value += len(sets)
        if not work.unappended:
            self._on_all_appended(work)

    def _start(
        self,
        work: _ProduceRequest,
        index: int,
        key: TopicPartition,
        records: memoryview | bytes | None,
    ) -> None:
        """Append now, or queue behind a rewrite. `work.unappended` falls once it is appended."""
        options = work.options
        try:
            partition = self._hosted.get(key)
            if key[0] in INTERNAL_TOPICS and options.origin is Origin.CLIENT:
                raise KafkaError(ErrorCode.invalid_topic_exception)
            if partition.rewriting is not None:
                copied = bytes(records or b"")
                partition.rewriting.append(lambda: self._take_turn(work, index, key, copied))
                return
            partition.topic_metrics.total_produce_requests.value += 1
            now_ms = self._clock.wall_ms()
            analysis = analyse(
                records,
                partition.log.config,
                now_ms=now_ms,
                origin=options.origin,
                zstd=options.zstd,
                partition=key,
            )
            if analysis.header.attributes & TRANSACTIONAL_BIT and self._waits_for_verification(
                work, index, partition, analysis
            ):
                return
            if analysis.needs_rewrite:
                self._rewrite(work, index, partition, analysis)
                return
            self._append(work, index, partition, analysis, now_ms)
        except KafkaError as refusal:
            self._on_refused(work, index, key, records or b"", refusal)
        work.unappended -= 1

    def _append(
        self,
        work: _ProduceRequest,
        index: int,
        partition: HostedPartition,
        analysis: Analysis,
        now_ms: WallMs,
    ) -> None:
        acks, origin, producer_id = (
            work.options.acks,
            work.options.origin,
            analysis.header.producer_id,
        )
        if producer_id >= 0 and origin is Origin.CLIENT:
            self._admit_producer(partition, producer_id, now_ms)
        try:
            appended = partition.append(analysis, acks, origin, now_ms)
        except OSError as error:
            raise self._hosted.fail(partition, error) from None
        first, last, stamp, start, size, count, _, rolled = appended
        work.outcomes[index] = new(
            ProducedPartition,
            (partition.log.partition[1], GOOD, first, stamp, start, (), None, None),
        )
        self._hosted.topic_metrics.count_append(partition.topic_metrics, size, count, 0)
        if rolled or partition.waits_for_flush:
            self._flushes.request(partition)
        self._hosted.advance(partition)
        if acks == ALL and (partition.log.high_watermark <= last or partition.waits_for_flush):
            work.waits.append(_Wait(partition, partition.leader_epoch, last + 1, index))

    def _admit_producer(self, partition: HostedPartition, producer_id: int, now_ms: WallMs) -> None:
        if partition.log.producers.get(producer_id) is None:
            self._hosted.environment.producer_ids.admit(partition.key, producer_id, now_ms)

    def _on_refused(
        self,
        work: _ProduceRequest,
        index: int,
        key: TopicPartition,
        records: bytes | memoryview,
        refusal: KafkaError,
    ) -> None:
        partition, size = self._hosted.find(key), len(records)
        if partition is None:
            self._hosted.refused_appends.add(key, refusal.code)
        log.debug("%s: refused %d bytes of records: %s", key, size, refusal)
        by_log = partition is not None and refused_by_log(refusal, records)
        work.refuse(index, key, refusal, partition.log.start_offset if partition and by_log else -1)
        counted = (self._total,) if partition is None else (self._total, partition.topic_metrics)
        for metrics in counted:
            metrics.failed_produce_requests.value += 1
            metrics.bytes_rejected.value += size

    # Transactions

    def _waits_for_verification(
        self, work: _ProduceRequest, index: int, partition: HostedPartition, analysis: Analysis
    ) -> bool:
        """Whether the batch waits for the coordinator or for an earlier batch of this producer."""
        options, verifier, header = work.options, self.verifier, analysis.header
        if verifier is None or options.origin is not Origin.CLIENT:
            return False
        key = partition.key
        queue_key = (key, header.producer_id)
        queue = self._awaiting_verification.get(queue_key)
        if queue is not None:
            copied = bytes(analysis.content)
            queue.append(lambda: self._take_turn(work, index, key, copied))
            return True
        if not needs_verification(
            partition.log.producers.get(header.producer_id), header, options.txn
        ):
            return False
        assert options.txn is not None
        verdict: ErrorCode | None = None
        waiting = False

        def done(code: ErrorCode) -> None:
            nonlocal verdict
            verdict = code
            if waiting:
                self._on_verified(work, index, queue_key, analysis, code)

        verifier.admit(options.txn, key, header.producer_id, header.producer_epoch, done)
        if verdict is None:
            waiting, analysis = True, _copy(analysis)
            self._awaiting_verification[queue_key] = deque()
            return True
        if verdict is not GOOD:
            raise VerificationFailed(verdict)
        return False

    def _on_verified(
        self,
        work: _ProduceRequest,
        index: int,
        queue_key: tuple[TopicPartition, int],
        analysis: Analysis,
        code: ErrorCode,
    ) -> None:
        queue = self._awaiting_verification.pop(queue_key)
        if code is GOOD:
            self._append_verified(work, index, queue_key[0], analysis)
        else:
            self._on_refused(work, index, queue_key[0], analysis.content, VerificationFailed(code))
            self._finish_one(work)
        for turn in queue:
            turn()

    def _append_verified(
        self, work: _ProduceRequest, index: int, key: TopicPartition, analysis: Analysis
    ) -> None:
        """Append a batch that was validated before it waited for verification."""
        try:
            partition = self._hosted.get(key)
            if partition.rewriting is not None:
                partition.rewriting.append(
                    lambda: self._append_verified(work, index, key, analysis)
                )
                return
            if analysis.needs_rewrite:
                self._rewrite(work, index, partition, analysis)
                return
            self._append(work, index, partition, analysis, self._clock.wall_ms())
        except KafkaError as refusal:
            self._on_refused(work, index, key, analysis.content, refusal)
        self._finish_one(work)

    # Rewriting, off the loop

    def _rewrite(
        self, work: _ProduceRequest, index: int, partition: HostedPartition, analysis: Analysis
    ) -> None:
        partition.rewriting = deque()
        copied = _copy(analysis)
        thread_pool = self._hosted.environment.thread_pool
        rewritten = thread_pool.run(
            rewrite, copied, partition.log.config, self._clock.wall_ms(), partition.key
        )
        records = copied.content
        rewritten.add_done_callback(
            lambda done: self._on_rewritten(work, index, partition, records, done)
        )

    def _on_rewritten(
        self,
        work: _ProduceRequest,
        index: int,
        partition: HostedPartition,
        records: memoryview,
        done: Future[Analysis],
    ) -> None:
        try:
            self._append(work, index, partition, done.result(), self._clock.wall_ms())
        except KafkaError as refusal:
            self._on_refused(work, index, partition.key, records, refusal)
        except Exception:  # a failure must not block the partition for ever
            log.exception(
                "failed to rewrite a batch for %s; replied UNKNOWN_SERVER_ERROR", partition.key
            )
            unforeseen = KafkaError(ErrorCode.unknown_server_error)
            self._on_refused(work, index, partition.key, records, unforeseen)
        self._finish_one(work)
        queue, partition.rewriting = partition.rewriting, None
        while queue and partition.rewriting is None:
            queue.popleft()()
        if queue:  # one of them is being rewritten itself
            assert partition.rewriting is not None
            partition.rewriting.extend(queue)

    def _take_turn(
        self,
        work: _ProduceRequest,
        index: int,
        key: TopicPartition,
        records: bytes | memoryview,
    ) -> None:
        before = work.unappended
        self._start(work, index, key, records)
        if work.unappended < before and not work.unappended:
            self._on_all_appended(work)

    # Waiting

    def _finish_one(self, work: _ProduceRequest) -> None:
        work.unappended -= 1
        if not work.unappended:
            self._on_all_appended(work)

    def _on_all_appended(self, work: _ProduceRequest) -> None:
        if not work.waits:
            work.on_done(work.outcomes)
            return
        delayed = DelayedProduce(work)
        keys = [wait.partition.key for wait in work.waits]
        self._hosted.waiting.produce.try_complete_else_watch(delayed, keys)


def _copy(analysis: Analysis) -> Analysis:
    """The same analysis over a copy, because the receive buffer will be reused."""
    return analysis._replace(content=memoryview(bytes(analysis.content)))


class DelayedProduce(Delayed):
    """Waits until each partition's high watermark covers what was appended to it."""

    __slots__ = ("_work",)

    def __init__(self, work: _ProduceRequest) -> None:
        timeout_ms = work.options.timeout_ms
        if all(wait.partition.is_alone_in_sync for wait in work.waits):
            timeout_ms = max(timeout_ms, FLUSH_TIMEOUT_MS)
        super().__init__(timeout_ms)
        self._work = work

    def try_complete(self) -> bool:
        work = self._work
        work.waits = [wait for wait in work.waits if not _is_settled(work, wait)]
        return not work.waits and self.force_complete()

    def on_complete(self) -> None:
        work = self._work
        for wait in work.waits:  # timed out
            work.refuse(wait.position, wait.partition.key, KafkaError(wait.partition.timeout_code))
        work.on_done(work.outcomes)


def _is_settled(work: _ProduceRequest, wait: _Wait) -> bool:
    code = wait.partition.acknowledged(wait.epoch, wait.required)
    if code is None:
        return False
    if code is not GOOD:
        work.refuse(wait.position, wait.partition.key, KafkaError(code))
    return True
