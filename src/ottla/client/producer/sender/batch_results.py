"""The result of a batch: success, a retry, a split, or failure.

Owns: the rules of retrying (PRD-51), splitting (PRD-53) and expiring (PRD-37). Never sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.errors import ErrorCode, KafkaError
from ottla.client.producer.buffer.accumulator import Accumulator
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.buffer.batch_encoder import Encoder
from ottla.client.producer.buffer.record_intake import RecordIntake
from ottla.client.producer.sender.batch_numbering import BatchNumbering
from ottla.config.client import ProducerConfig
from ottla.model.clock import MonoMs

MAY_HAVE_ARRIVED: Final = frozenset(
    {
        ErrorCode.network_exception,
        ErrorCode.request_timed_out,
        ErrorCode.not_enough_replicas_after_append,
    }
)
"""Errors after which the batch may still be in the log."""


@dataclass(slots=True)
class ResultCounts:
    """Counts of batch results."""

    batches: int = 0
    records: int = 0
    sent_bytes: int = 0
    plain_bytes: int = 0
    """Of the same batches, before compression."""
    retries: int = 0
    failures: int = 0
    splits: int = 0
    expired_batches: int = 0

    @property
    def average_batch_bytes(self) -> float:
        return self.sent_bytes / max(self.batches, 1)

    @property
    def compression_rate(self) -> float:
        """Bytes sent for each byte before compression; 0 before the first batch."""
        return self.sent_bytes / max(self.plain_bytes, 1)


class BatchResults:
    """Handles the results of batches."""

    def __init__(
        self,
        config: ProducerConfig,
        cluster: Cluster,
        accumulator: Accumulator,
        numbering: BatchNumbering,
        intake: RecordIntake,
    ) -> None:
        self._config = config
        self._clock = cluster.clock
        self._backoff = cluster.backoff
        self._intake = intake
        self._accumulator = accumulator
        self._numbering = numbering
        self._may_have_arrived: set[Batch] = set()
        self.counts = ResultCounts()

    def succeed(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        if batch.is_done:
            return  # it expired while it was in flight
        self._numbering.on_success(batch)
        self.counts.batches += 1
        self.counts.records += batch.records
        self.counts.sent_bytes += batch.size
        self.counts.plain_bytes += batch.plain_bytes
        self._may_have_arrived.discard(batch)
        batch.succeed(base_offset, append_time_ms)
        self._accumulator.release(batch)

    def on_error(self, batch: Batch, error: KafkaError, log_start: int) -> None:
        """A broker returned an error for the batch, or the connection was lost."""
        if batch.is_done:
            return
        if error.code is ErrorCode.duplicate_sequence_number:
            self.succeed(batch, -1, -1)  # it is in the log; the broker no longer knows its offset
            return
        if error.code in MAY_HAVE_ARRIVED:
            self._may_have_arrived.add(batch)
        now_ms = self._clock.mono_ms()
        is_late = now_ms - batch.created_ms >= self._config.delivery_ms
        if (
            is_late
            or batch.attempts >= self._config.retries
            or not self._numbering.may_retry(batch, error, log_start)
        ):
            self.fail(batch, error)
            return
        batch.attempts += 1
        batch.retry_at_ms = MonoMs(now_ms + self._backoff.after(batch.attempts))
        self.counts.retries += batch.records
        self._accumulator.put_back([batch])

    def fail(self, batch: Batch, error: BaseException) -> None:
        """Fail the batch for good."""
        if batch.is_done:
            return
        may_have_arrived = batch in self._may_have_arrived
        self._may_have_arrived.discard(batch)
        self.counts.failures += batch.records
        self._numbering.on_failure(batch, error, may_have_arrived=may_have_arrived)
        if self._numbering.transaction is not None:
            self._intake.close_open_batches()  # the transaction has failed: nothing more is added
        batch.fail(error)
        self._accumulator.release(batch)

    def split(self, batch: Batch, encoder: Encoder, batch_size: int) -> None:
        """Split a batch that a broker found too large."""
        if batch.is_done:
            return
        self.counts.splits += 1
        parts = encoder.split(batch, min(batch_size, max(1, batch.size // 2)))
        self._numbering.on_split(batch, parts)
        batch.split_into(parts)
        self._accumulator.replace(batch, parts)

    def expire(self, now_ms: MonoMs) -> int:
        """Fail batches that took too long; the time until the next expires."""
        for batch in self._accumulator.remove_expired(now_ms):
            self.counts.expired_batches += 1
            if batch.stamp is not None or batch.attempts:
                self._may_have_arrived.add(batch)
            waited = (
                f"{now_ms - batch.created_ms} ms (delivery.timeout.ms {self._config.delivery_ms})"
            )
            error = TimeoutError(f"{batch.records} records to {batch.tp} expired after {waited}")
            self.fail(batch, error)
        return self._accumulator.next_expiry_ms(now_ms)

    def abandon(self, error: BaseException, *, numbered: bool) -> None:
        """Fail queued batches; numbered ones were sent before, and may still succeed."""
        for batch in self._accumulator.take_unsent(numbered=numbered):
            self.fail(batch, error)

    def abandon_all(self, error: BaseException) -> None:
        """Fail all batches without an outcome."""
        self.abandon(error, numbered=True)
        for batch in self._accumulator.incomplete_batches():
            self._may_have_arrived.add(batch)
            self.fail(batch, error)
