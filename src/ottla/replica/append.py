"""Producing: append to each partition asked for, then wait as acks asks.

Owns the order of an append's steps and the wait for acks=all. Never decodes a request or encodes
a reply. Hot: benchmarks/requests.py.

Appends run inline, on the loop, straight from the receive buffer. A batch that must be rewritten
first (another codec) is copied and rewritten on the pool; until it is appended, later appends to
that partition queue behind it, so that a producer's sequence is kept.
"""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from ottla.delay.purgatory import Delayed
from ottla.log.log import Origin
from ottla.log.validate import Analysis, RefusedRecords, analyse, rewrite
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import INTERNAL_TOPICS, LeaderEpoch, Offset, TopicPartition
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted import Hosted
from ottla.replica.partition import Partition

ALL: Final = -1


class ToAppend(NamedTuple):
    """One partition's record set; the records are a view that is valid only during the call."""

    key: TopicPartition
    records: memoryview | bytes | None
    refused: ErrorCode = ErrorCode.none
    """What the API layer already found wrong with it."""


class AppendTerms(NamedTuple):
    """What a produce asks for as a whole."""

    acks: int
    timeout_ms: int
    origin: Origin = Origin.CLIENT
    zstd: bool = True
    """The request's version knows that codec."""


class Outcome:
    """How one partition's append went; what a produce reply says of it."""

    __slots__ = ("append_time_ms", "base_offset", "code", "log_start", "message", "record_errors")

    def __init__(self) -> None:
        self.code = ErrorCode.none
        self.record_errors: Sequence[tuple[int, str | None]] = ()
        self.base_offset: Offset = -1
        self.append_time_ms = -1
        self.log_start: Offset = -1
        self.message: str | None = None

    def refused(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        self.message = message
        self.base_offset = -1
        self.append_time_ms = -1

    def refused_by(self, refusal: KafkaError) -> None:
        self.refused(refusal.code, refusal.message)
        if isinstance(refusal, RefusedRecords):
            self.record_errors = refusal.errors


Done: TypeAlias = Callable[[list[Outcome]], None]


class Appends:
    """Takes record sets for the partitions led here."""

    def __init__(self, hosted: Hosted, flushes: FlushLoop) -> None:
        self.hosted = hosted
        self.flushes = flushes

    def append(self, sets: Sequence[ToAppend], terms: AppendTerms, done: Done) -> None:
        """Call `done` once with an outcome for each set, now or when acks is satisfied."""
        _Appending(self, terms, done).run(sets)


class _Wait(NamedTuple):
    """An acks=all append that still has to be acknowledged."""

    partition: Partition
    epoch: LeaderEpoch
    required: Offset
    outcome: Outcome


class _Appending:
    """One produce under way."""

    __slots__ = ("_appends", "_done", "_left", "_outcomes", "_terms", "_waits")

    def __init__(self, appends: Appends, terms: AppendTerms, done: Done) -> None:
        self._appends = appends
        self._terms = terms
        self._done = done
        self._left = 1
        self._outcomes: list[Outcome] = []
        self._waits: list[_Wait] = []

    def run(self, sets: Sequence[ToAppend]) -> None:
        for one in sets:
            outcome = Outcome()
            self._outcomes.append(outcome)
            self._start(one, outcome)
        self._one_less()

    def _start(self, one: ToAppend, outcome: Outcome) -> None:
        try:
            if one.refused is not ErrorCode.none:
                raise KafkaError(one.refused)
            partition = self._appends.hosted.get(one.key)
            if one.key.topic in INTERNAL_TOPICS and self._terms.origin is Origin.CLIENT:
                raise KafkaError(ErrorCode.invalid_topic_exception)
            if partition.rewriting is not None:
                kept = bytes(one.records or b"")
                self._left += 1
                partition.rewriting.append(lambda: self._take_turn(partition, kept, outcome))
                return
            analysis = analyse(
                one.records,
                partition.log.config,
                now_ms=self._appends.hosted.around.clock.wall_ms(),
                origin=self._terms.origin,
                zstd=self._terms.zstd,
            )
            if analysis.needs_rewrite:
                self._rewrite(partition, analysis, outcome)
            else:
                self._append(partition, analysis, outcome)
        except KafkaError as refusal:
            outcome.refused_by(refusal)

    def _append(self, partition: Partition, analysis: Analysis, outcome: Outcome) -> None:
        appends, terms = self._appends, self._terms
        try:
            appended = partition.append(analysis, acks=terms.acks, origin=terms.origin)
        except KafkaError as refusal:
            outcome.refused_by(refusal)
            return
        except OSError as error:
            appends.flushes.directory_failed(partition, error)
            outcome.refused(ErrorCode.kafka_storage_error)
            return
        for traffic in (partition.traffic, appends.hosted.traffic.all):
            traffic.bytes_in.value += appended.size
            traffic.messages_in.value += appended.count
        outcome.base_offset = appended.first_offset
        outcome.append_time_ms = appended.append_time_ms
        outcome.log_start = appended.log_start_offset
        if appended.rolled or partition.waits_for_flush:
            appends.flushes.want(partition)
        appends.hosted.advance(partition)
        if terms.acks == ALL:
            required = appended.last_offset + 1
            self._waits.append(_Wait(partition, partition.leader_epoch, required, outcome))

    # Rewriting, off the loop

    def _rewrite(self, partition: Partition, analysis: Analysis, outcome: Outcome) -> None:
        self._left += 1
        partition.rewriting = deque()
        kept = analysis._replace(content=memoryview(bytes(analysis.content)))
        around = self._appends.hosted.around
        rewritten = around.off.run(rewrite, kept, partition.log.config, around.clock.wall_ms())
        rewritten.add_done_callback(lambda done: self._rewritten(partition, done, outcome))

    def _rewritten(self, partition: Partition, done: Future[Analysis], outcome: Outcome) -> None:
        try:
            self._append(partition, done.result(), outcome)
        except KafkaError as refusal:
            outcome.refused_by(refusal)
        queue, partition.rewriting = partition.rewriting, None
        while queue and partition.rewriting is None:
            queue.popleft()()
        if queue:  # one of them is being rewritten in its turn
            assert partition.rewriting is not None
            partition.rewriting.extend(queue)
        self._one_less()

    def _take_turn(self, partition: Partition, records: bytes, outcome: Outcome) -> None:
        self._start(ToAppend(partition.key, records), outcome)
        self._one_less()

    # Waiting

    def _one_less(self) -> None:
        self._left -= 1
        if self._left:
            return
        total = self._appends.hosted.traffic.all
        total.total_produce_requests.value += len(self._outcomes)
        if not self._waits:
            self._done(self._outcomes)
            return
        waiting = self._appends.hosted.waiting.produce
        parked = DelayedProduce(self._waits, self._terms.timeout_ms, self._finished)
        waiting.try_complete_else_watch(parked, [wait.partition.key for wait in self._waits])

    def _finished(self) -> None:
        self._done(self._outcomes)


class DelayedProduce(Delayed):
    """Waits until each partition's high watermark covers what was appended to it."""

    __slots__ = ("_done", "_waits")

    def __init__(self, waits: list[_Wait], timeout_ms: int, done: Callable[[], None]) -> None:
        super().__init__(timeout_ms)
        self._waits = waits
        self._done = done

    def try_complete(self) -> bool:
        self._waits = [wait for wait in self._waits if not _settled(wait)]
        return not self._waits and self.force_complete()

    def on_complete(self) -> None:
        for wait in self._waits:  # out of time
            wait.outcome.refused(ErrorCode.request_timed_out)
        self._done()


def _settled(wait: _Wait) -> bool:
    code = wait.partition.acknowledged(wait.epoch, wait.required)
    if code is None:
        return False
    if code is not ErrorCode.none:
        wait.outcome.refused(code)
    return True
