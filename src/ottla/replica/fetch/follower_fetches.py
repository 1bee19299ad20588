"""Fetches by followers: what a leader learns from them, and what it holds back.

Owns the rules: a follower's position counts before the read, it is sent a newer high watermark
soon, records that it requests again are verified, and the leader's throttle applies to
followers that are not in sync. What is known of each follower is in the partition's leadership.
Never reads a log, and does not wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.log.log import Log
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId
from ottla.replica.fetch.options import FetchOptions
from ottla.replica.fetch.replication_quota import ReplicationQuota, is_throttled
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.isr_loop import IsrLoop
from ottla.replica.partition import HostedPartition
from ottla.replica.partition_fetch import PartitionFetch, PartitionFetchResult


class FollowerFetches:
    """The followers of the partitions led here, as readers."""

    def __init__(self, hosted: HostedPartitions, isr: IsrLoop, quota: ReplicationQuota) -> None:
        self._hosted = hosted
        self._isr = isr
        self._quota = quota

    def record(
        self, partition: HostedPartition, request: PartitionFetch, options: FetchOptions
    ) -> None:
        """The follower has everything before the offset; raises KafkaError if it may not read."""
        if not continues(partition.log, request):
            return  # it must truncate its log first: what it has does not count
        grown = partition.record_follower_fetch(
            options.replica_id, request.offset, request.log_start, options.replica_epoch
        )
        if grown is not None:
            self._isr.propose(partition, grown)
        self._hosted.advance(partition)
        self._hosted.waiting.delete_records.check(partition.key)

    @staticmethod
    def is_repeated(
        partition: HostedPartition, request: PartitionFetch, options: FetchOptions
    ) -> bool:
        """Whether the follower was sent records from there before: perhaps they are corrupt."""
        leadership = partition.leadership
        return (
            leadership is not None
            and leadership.followers[options.replica_id].sent_offset == request.offset
        )

    def is_held_back(self, partition: HostedPartition, options: FetchOptions) -> bool:
        """Whether a follower must wait because of the leader's throttle: never one in sync."""
        replicas = partition.log.config.leader_replication_throttled_replicas
        if not replicas or partition.leadership is None:
            return False
        environment = self._hosted.environment
        return (
            options.replica_id not in partition.leadership.isr
            and is_throttled(replicas, partition.key, environment.broker_id)
            and self._quota.is_exceeded(environment.clock.mono_ms())
        )

    def count_throttled(self, partition: HostedPartition, size: int) -> None:
        """Bytes of a throttled replica use the quota, also where it is not held back."""
        environment = self._hosted.environment
        replicas = partition.log.config.leader_replication_throttled_replicas
        if is_throttled(replicas, partition.key, environment.broker_id):
            self._quota.record(size, environment.clock.mono_ms())

    def needs_watermark(self, request: PartitionFetch, broker: BrokerId) -> bool:
        """Whether there is a newer high watermark than the follower was sent."""
        partition = self._hosted.find(request.key)
        if partition is None or partition.leadership is None:
            return False
        follower = partition.leadership.followers.get(broker)
        return follower is not None and follower.sent_high_watermark < partition.log.high_watermark

    def record_sent(self, fetched: Iterable[PartitionFetchResult], broker: BrokerId) -> None:
        """Remember the high watermarks and the records that this follower is sent."""
        for result in fetched:
            partition = self._hosted.find(result.request.key)
            if partition is not None and partition.leadership is not None:
                follower = partition.leadership.followers.get(broker)
                if follower is not None:
                    follower.sent_high_watermark = result.part.high_watermark
                    if result.size:
                        follower.sent_offset = result.request.offset


def continues(log: Log, request: PartitionFetch) -> bool:
    """Whether all that the reader has is the beginning of this log."""
    if not log.start_offset <= request.offset <= log.end_offset:
        return False
    try:
        return request.last_fetched_epoch < 0 or diverging_epoch(log, request) is None
    except KafkaError:
        return False


def diverging_epoch(log: Log, request: PartitionFetch) -> tuple[int, int] | None:
    """The epoch and end that the reader must truncate to, when its last batch is not on our log."""
    epoch, end = log.epochs.end_offset(request.last_fetched_epoch, log.end_offset)
    if epoch < 0 or end < 0:
        raise KafkaError(ErrorCode.offset_out_of_range)
    if epoch < request.last_fetched_epoch or end < request.offset:
        return epoch, end
    return None
