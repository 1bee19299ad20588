"""Appends batches of the broker itself: records of internal topics, and transaction markers.

Owns how such a batch is appended, like an acks=all produce; `commits` waits for it. A client's
batch is validated first (`append`); the broker's own header is trusted. Never builds a batch. Hot:
benchmarks/transactions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.log.log import Origin
from ottla.log.validate import Analysis, analyse
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset
from ottla.protocol.records.header import HEADER, BatchHeader
from ottla.replica.append import ALL
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

OURS: Final = Origin.COORDINATOR


class InternalAppender:
    def __init__(self, hosted: HostedPartitions) -> None:
        self._hosted = hosted
        self._clock = hosted.environment.clock
        self._total = hosted.topic_metrics.all
        self.commits = hosted.waiting.commits

    def append(
        self,
        partition: HostedPartition,
        batch: bytes,
        timeout_ms: int,
        on_done: Callable[[ErrorCode], None],
        appended: Callable[[Offset], None] | None = None,
    ) -> None:
        """Append now; call `on_done` once, with the high watermark beyond it or with a refusal.

        `appended` is called with its first offset, before anything else is called.
        """
        if partition.rewriting is not None:  # a client's batch was here before it
            partition.rewriting.append(
                lambda: self.append(partition, batch, timeout_ms, on_done, appended)
            )
            return
        try:
            end = self._append(partition, batch, appended)
        except KafkaError as refusal:
            self._total.failed_produce_requests.value += 1
            partition.topic_metrics.failed_produce_requests.value += 1
            on_done(refusal.code)
            return
        self.commits.wait(partition, end, timeout_ms, on_done)

    def _append(
        self, partition: HostedPartition, batch: bytes, on_appended: Callable[[Offset], None] | None
    ) -> Offset:
        now_ms = self._clock.wall_ms()
        analysis = _trusted_analysis(partition, batch, now_ms)
        try:
            appended = partition.append(analysis, ALL, OURS, now_ms)
        except OSError as error:
            raise self._hosted.fail(partition, error) from None
        if on_appended is not None:
            on_appended(appended.first_offset)
        _, last, _, _, size, count, _, rolled = appended
        self._hosted.topic_metrics.count_append(partition.topic_metrics, size, count)
        if rolled or partition.waits_for_flush:
            self._hosted.request_flush(partition)
        self._hosted.advance(partition)
        return last + 1


def _trusted_analysis(partition: HostedPartition, batch: bytes, now_ms: WallMs) -> Analysis:
    config = partition.log.config
    if len(batch) > config.max_message_bytes or config.message_timestamp_type != "CreateTime":
        return analyse(batch, config, now_ms=now_ms, origin=OURS)  # refuses, or gives it our time
    header = BatchHeader._make(HEADER.unpack_from(batch))
    return Analysis(memoryview(batch), header, False, False)
