"""Batches that the broker makes itself: records of internal topics, and transaction markers.

Owns how one such batch is appended, on the terms of an acks=all produce; who waits for it stands
in `commits`. What a client sends is examined first (`append`); this is ours, so its header is taken
at its word. Never makes a batch. Hot: benchmarks/transactions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.log.log import Origin
from ottla.log.validate import Analysis, analyse
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset
from ottla.protocol.records.header import HEADER, BatchHeader
from ottla.replica.append import ALL
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

OURS: Final = Origin.COORDINATOR
_new: Final = tuple.__new__  # a named tuple at half its price


class InternalAppender:
    def __init__(self, hosted: HostedPartitions) -> None:
        self._hosted = hosted
        self._clock = hosted.around.clock
        self._total = hosted.traffic.all
        self.commits = hosted.waiting.commits

    def append(
        self,
        partition: HostedPartition,
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
        self.commits.wait(partition, end, timeout_ms, done)

    def _append(
        self, partition: HostedPartition, batch: bytes, told: Callable[[Offset], None] | None
    ) -> Offset:
        now_ms = self._clock.wall_ms()
        analysis = _taken_as_it_is(partition, batch, now_ms)
        try:
            appended = partition.append(analysis, ALL, OURS, now_ms)
        except OSError as error:
            raise self._hosted.fail(partition, error) from None
        if told is not None:
            told(appended.first_offset)
        _, last, _, _, size, count, _, rolled = appended
        for traffic in (partition.traffic, self._total):
            traffic.total_produce_requests.value += 1
            traffic.bytes_in.value += size
            traffic.messages_in.value += count
        if rolled or partition.waits_for_flush:
            self._hosted.want_flush(partition)
        self._hosted.advance(partition)
        return last + 1


def _taken_as_it_is(partition: HostedPartition, batch: bytes, now_ms: int) -> Analysis:
    config = partition.log.config
    if len(batch) > config.max_message_bytes or config.message_timestamp_type != "CreateTime":
        return analyse(batch, config, now_ms=now_ms, origin=OURS)  # refuses, or gives it our time
    header = _new(BatchHeader, HEADER.unpack_from(batch))
    return _new(Analysis, (memoryview(batch), header, False, False))
