"""Batches that the broker makes itself: records of internal topics, and transaction markers.

Owns how one such batch is appended and waited for, as an acks=all produce would be. What a client
sends is examined first (`append`); this is ours, so its header is taken at its word. Never makes a
batch. Hot: benchmarks/transactions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.delay.purgatory import Delayed
from ottla.log.log import Origin
from ottla.log.validate import Analysis, analyse
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset
from ottla.protocol.records.header import HEADER, BatchHeader
from ottla.replica.append import ALL
from ottla.replica.hosted import Hosted
from ottla.replica.partition import Partition

OURS: Final = Origin.COORDINATOR


class OwnAppends:
    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted
        self._clock = hosted.around.clock
        self._total = hosted.traffic.all

    def append(
        self,
        partition: Partition,
        batch: bytes,
        timeout_ms: int,
        done: Callable[[ErrorCode], None],
        appended: Callable[[Offset], None] | None = None,
    ) -> None:
        """Append now; call `done` once, with the high watermark beyond it or with a refusal.

        `appended` hears where it stands, before anybody else hears of anything.
        """
        if partition.rewriting is not None:  # a client's batch was here before it
            partition.rewriting.append(
                lambda: self.append(partition, batch, timeout_ms, done, appended)
            )
            return
        try:
            end = self._append(partition, batch, appended)
        except KafkaError as refusal:
            self._total.failed_produce_requests.value += 1
            partition.traffic.failed_produce_requests.value += 1
            done(refusal.code)
            return
        self.wait(partition, end, timeout_ms, done)

    def wait(
        self,
        partition: Partition,
        end: Offset,
        timeout_ms: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Call `done` once everything below `end` is committed, or will not be in time."""
        code = partition.acknowledged(partition.leader_epoch, end)
        if code is None:
            waiting = _Committing(partition, end, timeout_ms, done)
            self._hosted.waiting.produce.watch(waiting, (partition.key,))
        else:
            done(code)

    def _append(
        self, partition: Partition, batch: bytes, told: Callable[[Offset], None] | None
    ) -> Offset:
        now_ms = self._clock.wall_ms()
        analysis = _taken_as_it_is(partition, batch, now_ms)
        try:
            appended = partition.append(analysis, ALL, OURS, now_ms)
        except OSError as error:
            raise self._hosted.fail(partition, error) from None
        if told is not None:
            told(appended.first_offset)
        for traffic in (partition.traffic, self._total):
            traffic.total_produce_requests.value += 1
            traffic.bytes_in.value += appended.size
            traffic.messages_in.value += appended.count
        if appended.rolled or partition.waits_for_flush:
            self._hosted.want_flush(partition)
        self._hosted.advance(partition)
        return appended.last_offset + 1


def _taken_as_it_is(partition: Partition, batch: bytes, now_ms: int) -> Analysis:
    config = partition.log.config
    if len(batch) > config.max_message_bytes or config.message_timestamp_type != "CreateTime":
        return analyse(batch, config, now_ms=now_ms, origin=OURS)  # refuses, or gives it our time
    return Analysis(memoryview(batch), BatchHeader._make(HEADER.unpack_from(batch)), False, False)


class _Committing(Delayed):
    """Waits until the high watermark covers what was appended."""

    __slots__ = ("_code", "_done", "_end", "_epoch", "_partition")

    def __init__(
        self,
        partition: Partition,
        end: Offset,
        timeout_ms: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._partition = partition
        self._epoch = partition.leader_epoch
        self._end = end
        self._done = done
        self._code: ErrorCode | None = None

    def try_complete(self) -> bool:
        self._code = self._partition.acknowledged(self._epoch, self._end)
        return self._code is not None and self.force_complete()

    def on_complete(self) -> None:
        self._done(ErrorCode.request_timed_out if self._code is None else self._code)
