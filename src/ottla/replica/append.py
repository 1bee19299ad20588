"""Producing: append to each partition asked for, then wait as acks asks.

Owns the order of an append's steps and the wait for acks=all. Never decodes a request or encodes
a reply. Hot: benchmarks/small_requests.py.

Appends run inline, on the loop, straight from the receive buffer. A batch that must be rewritten
first (another codec), or whose records take long to examine (`validate`), is copied and goes to the
pool; until it is appended, later appends to that partition queue behind it, so that a producer's
sequence is kept. The first batch of a transaction waits at the gate until its coordinator knows of
the partition, and that producer's later ones behind it.
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
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import INTERNAL_TOPICS, LeaderEpoch, Offset, TopicPartition
from ottla.protocol.hot import ProducedPartition
from ottla.protocol.records.header import TRANSACTIONAL_BIT
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition
from ottla.replica.refusals import NotAdmitted, refused_by_log
from ottla.replica.transaction_verification import (
    TransactionalBatch,
    TransactionVerifier,
    needs_verification,
)

log = logging.getLogger(__name__)

ALL: Final = -1
GOOD: Final = ErrorCode.none
PENDING: Final = ProducedPartition(-1)
_new: Final = tuple.__new__  # a named tuple at half its price; hot

Outcome: TypeAlias = ProducedPartition
Done: TypeAlias = Callable[[list[Outcome]], None]


class PartitionAppend(NamedTuple):
    """One partition's record set; the records are a view that is valid only during the call."""

    key: TopicPartition
    records: memoryview | bytes | None
    refused: ErrorCode = GOOD
    """What the API layer already found wrong with it."""


class AppendOptions(NamedTuple):
    """What a produce asks for as a whole."""

    acks: int
    timeout_ms: int
    origin: Origin = Origin.CLIENT
    zstd: bool = True
    """The request's version knows that codec."""
    txn: TransactionalBatch | None = None
    """Whose transaction it is part of, if it is."""


class _Wait(NamedTuple):
    """An acks=all append that still has to be acknowledged; `at` is its place in the reply."""

    partition: HostedPartition
    epoch: LeaderEpoch
    required: Offset
    at: int


class _Work:
    """One produce under way."""

    __slots__ = ("done", "left", "outcomes", "terms", "waits")

    def __init__(self, terms: AppendOptions, done: Done, count: int) -> None:
        self.terms = terms
        self.done = done
        self.left = count
        self.outcomes: list[Outcome] = []
        self.waits: list[_Wait] = []

    def refuse(
        self, at: int, key: TopicPartition, refusal: KafkaError, log_start: Offset = -1
    ) -> None:
        errors = refusal.errors if isinstance(refusal, RefusedRecords) else ()
        self.outcomes[at] = ProducedPartition(
            key.partition,
            refusal.code,
            log_start_offset=max(log_start, self.outcomes[at].log_start_offset),
            error_message=refusal.message,
            record_errors=errors,
        )


class Appender:
    """Takes record sets for the partitions led here."""

    def __init__(self, hosted: HostedPartitions, flushes: FlushLoop) -> None:
        self._hosted = hosted
        self._flushes = flushes
        self._clock = hosted.around.clock
        self._total = hosted.traffic.all
        self.on_first: Callable[[], object] | None = None
        """Called once, when the first record set arrives."""
        self.gate: TransactionVerifier | None = None
        """Who admits transactions; none until there is a coordinator to ask."""
        self._at_gate: dict[tuple[TopicPartition, int], deque[Callable[[], None]]] = {}

    def append(self, sets: Sequence[PartitionAppend], terms: AppendOptions, done: Done) -> None:
        """Call `done` once with an outcome for each set, now or when acks is satisfied."""
        if self.on_first is not None:
            on_first, self.on_first = self.on_first, None
            on_first()
        work = _Work(terms, done, len(sets))
        outcomes = work.outcomes
        for at, (key, records, refused) in enumerate(sets):
            if refused is GOOD:
                outcomes.append(PENDING)
                self._start(work, at, key, records)
            else:
                outcomes.append(ProducedPartition(key.partition, refused))
                work.left -= 1
        self._total.total_produce_requests.value += len(sets)
        if not work.left:
            self._appended(work)

    def _start(
        self,
        work: _Work,
        at: int,
        key: TopicPartition,
        records: memoryview | bytes | None,
    ) -> None:
        """Append now, or queue behind a rewrite. `work.left` falls once it is appended."""
        terms = work.terms
        try:
            partition = self._hosted.get(key)
            if key[0] in INTERNAL_TOPICS and terms.origin is Origin.CLIENT:
                raise KafkaError(ErrorCode.invalid_topic_exception)
            if partition.rewriting is not None:
                kept = bytes(records or b"")
                partition.rewriting.append(lambda: self._take_turn(work, at, key, kept))
                return
            partition.traffic.total_produce_requests.value += 1
            now_ms = self._clock.wall_ms()
            analysis = analyse(
                records,
                partition.log.config,
                now_ms=now_ms,
                origin=terms.origin,
                zstd=terms.zstd,
                partition=key,
            )
            if analysis.header.attributes & TRANSACTIONAL_BIT and self._waits_at_gate(
                work, at, partition, analysis
            ):
                return
            if analysis.needs_rewrite:
                self._rewrite(work, at, partition, analysis)
                return
            self._append(work, at, partition, analysis, now_ms)
        except KafkaError as refusal:
            self._refused(work, at, key, records or b"", refusal)
        work.left -= 1

    def _append(
        self, work: _Work, at: int, partition: HostedPartition, analysis: Analysis, now_ms: int
    ) -> None:
        acks = work.terms.acks
        try:
            appended = partition.append(analysis, acks, work.terms.origin, now_ms)
        except OSError as error:
            raise self._hosted.fail(partition, error) from None
        first, last, stamp, start, size, count, _, rolled = appended
        work.outcomes[at] = _new(
            ProducedPartition,
            (partition.log.partition[1], GOOD, first, stamp, start, (), None, None),
        )
        traffic, total = partition.traffic, self._total
        traffic.bytes_in.value += size
        traffic.messages_in.value += count
        total.bytes_in.value += size
        total.messages_in.value += count
        if rolled or partition.waits_for_flush:
            self._flushes.want(partition)
        self._hosted.advance(partition)
        if acks == ALL and (partition.log.high_watermark <= last or partition.waits_for_flush):
            work.waits.append(_Wait(partition, partition.leader_epoch, last + 1, at))

    def _refused(
        self,
        work: _Work,
        at: int,
        key: TopicPartition,
        records: bytes | memoryview,
        refusal: KafkaError,
    ) -> None:
        partition, size = self._hosted.find(key), len(records)
        by_log = partition is not None and refused_by_log(refusal, records)
        work.refuse(at, key, refusal, partition.log.start_offset if partition and by_log else -1)
        counted = (self._total,) if partition is None else (self._total, partition.traffic)
        for traffic in counted:
            traffic.failed_produce_requests.value += 1
            traffic.bytes_rejected.value += size

    # Transactions

    def _waits_at_gate(
        self, work: _Work, at: int, partition: HostedPartition, analysis: Analysis
    ) -> bool:
        """Whether the coordinator, or an earlier batch of this producer, has to be waited for."""
        terms, gate, header = work.terms, self.gate, analysis.header
        if gate is None or terms.origin is not Origin.CLIENT:
            return False
        key = partition.key
        place = (key, header.producer_id)
        queue = self._at_gate.get(place)
        if queue is not None:
            kept = bytes(analysis.content)
            queue.append(lambda: self._take_turn(work, at, key, kept))
            return True
        if not needs_verification(
            partition.log.producers.get(header.producer_id), header, terms.txn
        ):
            return False
        assert terms.txn is not None
        verdict: ErrorCode | None = None
        waiting = False

        def done(code: ErrorCode) -> None:
            nonlocal verdict
            verdict = code
            if waiting:
                self._answered(work, at, place, analysis, code)

        gate.admit(terms.txn, key, header.producer_id, header.producer_epoch, done)
        if verdict is None:
            waiting, analysis = True, _kept(analysis)
            self._at_gate[place] = deque()
            return True
        if verdict is not GOOD:
            raise NotAdmitted(verdict)
        return False

    def _answered(
        self,
        work: _Work,
        at: int,
        place: tuple[TopicPartition, int],
        analysis: Analysis,
        code: ErrorCode,
    ) -> None:
        queue = self._at_gate.pop(place)
        if code is GOOD:
            self._admitted(work, at, place[0], analysis)
        else:
            self._refused(work, at, place[0], analysis.content, NotAdmitted(code))
            self._one_less(work)
        for turn in queue:
            turn()

    def _admitted(self, work: _Work, at: int, key: TopicPartition, analysis: Analysis) -> None:
        """Append what was examined before it waited at the gate."""
        try:
            partition = self._hosted.get(key)
            if partition.rewriting is not None:
                partition.rewriting.append(lambda: self._admitted(work, at, key, analysis))
                return
            if analysis.needs_rewrite:
                self._rewrite(work, at, partition, analysis)
                return
            self._append(work, at, partition, analysis, self._clock.wall_ms())
        except KafkaError as refusal:
            self._refused(work, at, key, analysis.content, refusal)
        self._one_less(work)

    # Rewriting, off the loop

    def _rewrite(
        self, work: _Work, at: int, partition: HostedPartition, analysis: Analysis
    ) -> None:
        partition.rewriting = deque()
        kept = _kept(analysis)
        off = self._hosted.around.off
        rewritten = off.run(
            rewrite, kept, partition.log.config, self._clock.wall_ms(), partition.key
        )
        records = kept.content
        rewritten.add_done_callback(
            lambda done: self._rewritten(work, at, partition, records, done)
        )

    def _rewritten(
        self,
        work: _Work,
        at: int,
        partition: HostedPartition,
        records: memoryview,
        done: Future[Analysis],
    ) -> None:
        try:
            self._append(work, at, partition, done.result(), self._clock.wall_ms())
        except KafkaError as refusal:
            self._refused(work, at, partition.key, records, refusal)
        except Exception:  # one set's fault must not hold up the partition for ever
            log.exception(
                "failed to rewrite a batch for %s; replied UNKNOWN_SERVER_ERROR", partition.key
            )
            unforeseen = KafkaError(ErrorCode.unknown_server_error)
            self._refused(work, at, partition.key, records, unforeseen)
        self._one_less(work)
        queue, partition.rewriting = partition.rewriting, None
        while queue and partition.rewriting is None:
            queue.popleft()()
        if queue:  # one of them is being rewritten in its turn
            assert partition.rewriting is not None
            partition.rewriting.extend(queue)

    def _take_turn(
        self,
        work: _Work,
        at: int,
        key: TopicPartition,
        records: bytes | memoryview,
    ) -> None:
        before = work.left
        self._start(work, at, key, records)
        if work.left < before and not work.left:
            self._appended(work)

    # Waiting

    def _one_less(self, work: _Work) -> None:
        work.left -= 1
        if not work.left:
            self._appended(work)

    def _appended(self, work: _Work) -> None:
        if not work.waits:
            work.done(work.outcomes)
            return
        parked = DelayedProduce(work)
        keys = [wait.partition.key for wait in work.waits]
        self._hosted.waiting.produce.try_complete_else_watch(parked, keys)


def _kept(analysis: Analysis) -> Analysis:
    """The same once the receive buffer is used again."""
    content, *rest = analysis
    return _new(Analysis, (memoryview(bytes(content)), *rest))


class DelayedProduce(Delayed):
    """Waits until each partition's high watermark covers what was appended to it."""

    __slots__ = ("_work",)

    def __init__(self, work: _Work) -> None:
        super().__init__(work.terms.timeout_ms)
        self._work = work

    def try_complete(self) -> bool:
        work = self._work
        work.waits = [wait for wait in work.waits if not _settled(work, wait)]
        return not work.waits and self.force_complete()

    def on_complete(self) -> None:
        work = self._work
        for wait in work.waits:  # out of time
            work.refuse(wait.at, wait.partition.key, KafkaError(ErrorCode.request_timed_out))
        work.done(work.outcomes)


def _settled(work: _Work, wait: _Wait) -> bool:
    code = wait.partition.acknowledged(wait.epoch, wait.required)
    if code is None:
        return False
    if code is not GOOD:
        work.refuse(wait.at, wait.partition.key, KafkaError(code))
    return True
