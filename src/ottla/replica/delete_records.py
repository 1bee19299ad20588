"""Deleting records up to an offset: move the log start, then wait until every replica has.

Owns the wait for the low watermark. Never removes a file: retention does that later, segment by
segment.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.delay.purgatory import Delayed
from ottla.delay.slices import in_slices
from ottla.log.log import FAULTS
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import INTERNAL_TOPICS, Offset, TopicPartition
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

UP_TO_HIGH_WATERMARK: Final = -1


class Deletion:
    """The state and result of deleting records of one partition."""

    __slots__ = ("code", "low_watermark", "partition", "required")

    def __init__(self) -> None:
        self.code = ErrorCode.none
        self.low_watermark: Offset = -1
        self.partition: HostedPartition | None = None
        self.required: Offset = 0


class PartitionDeletion(NamedTuple):
    key: TopicPartition
    before: Offset


class RecordDeleter:
    def __init__(self, hosted: HostedPartitions, metadata: MetadataCache) -> None:
        self._hosted = hosted
        self._metadata = metadata

    async def delete(
        self, requests: Sequence[PartitionDeletion], timeout_ms: int
    ) -> list[Deletion]:
        deletions = [self._start(request) async for request in in_slices(requests)]
        left = [d async for d in in_slices(deletions) if not self.is_settled(d)]
        if left:
            done: Future[None] = self._hosted.environment.thread_pool.loop.create_future()
            delayed = DelayedDelete(self, left, timeout_ms, done)
            keys = [d.partition.key for d in left if d.partition is not None]
            self._hosted.waiting.delete_records.try_complete_else_watch(delayed, keys)
            await done
        return deletions

    def _start(self, request: PartitionDeletion) -> Deletion:
        deletion = Deletion()
        try:
            partition = self._hosted.get(request.key)
            partition.require_leadership()
            if request.key.topic in INTERNAL_TOPICS:
                raise KafkaError(ErrorCode.invalid_topic_exception)
            if "delete" not in partition.log.config.cleanup_policy:
                raise KafkaError(ErrorCode.policy_violation)
            high = partition.log.high_watermark
            before = high if request.before == UP_TO_HIGH_WATERMARK else request.before
            if before < 0 or before > high:
                raise KafkaError(ErrorCode.offset_out_of_range)
            _raise_start(self._hosted, partition, before)
            deletion.partition = partition
            deletion.required = before
        except KafkaError as refusal:
            deletion.code = refusal.code
        return deletion

    def is_settled(self, deletion: Deletion) -> bool:
        partition = deletion.partition
        if partition is None:
            return True
        if partition.leadership is None:
            deletion.code = partition.not_leader_error
            return True
        live = self._metadata.image.brokers
        low = partition.leadership.low_watermark(partition.log.start_offset, live)
        deletion.low_watermark = low
        return low >= deletion.required


def _raise_start(hosted: HostedPartitions, partition: HostedPartition, before: Offset) -> None:
    try:
        partition.log.raise_start_offset(before)
    except FAULTS as fault:
        raise hosted.fail(partition, fault) from fault
    partition.watchers.report_change()


class DelayedDelete(Delayed):
    """Waits until the low watermark of each partition has passed what was deleted."""

    __slots__ = ("_answer", "_deletes", "_waiting")

    def __init__(
        self, deletes: RecordDeleter, waiting: list[Deletion], timeout_ms: int, answer: Future[None]
    ) -> None:
        super().__init__(timeout_ms)
        self._deletes = deletes
        self._waiting = waiting
        self._answer = answer

    def try_complete(self) -> bool:
        """Of thousands only the last is looked at, until it is settled."""
        while self._waiting and self._deletes.is_settled(self._waiting[-1]):
            self._waiting.pop()
        return not self._waiting and self.force_complete()

    def on_complete(self) -> None:
        for deletion in self._waiting:
            if not self._deletes.is_settled(deletion):
                deletion.code = ErrorCode.request_timed_out
        if not self._answer.done():
            self._answer.set_result(None)
