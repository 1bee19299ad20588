"""The partitions hosted by this broker, and the listeners for their changes.

Owns the map from partition to replica, the partitions that are offline, and those deleted lately.
Never appends, reads or elects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol, TypeAlias

from ottla.delay.purgatory import Purgatory
from ottla.log.files import OutOfResources
from ottla.log.log import Log
from ottla.metadata.cache import MetadataCache
from ottla.metadata.image import Node
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import (
    DELETED_EPOCH,
    NO_EPOCH,
    BrokerId,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicPartition,
)
from ottla.replica.commit_waiter import CommitWaiter
from ottla.replica.environment import ReplicaEnvironment
from ottla.replica.partition import HostedPartition
from ottla.replica.topic_metrics import BrokerTopicMetrics

PartitionPurgatory: TypeAlias = Purgatory[TopicPartition]

DELETED_MAX: Final = 10_000
"""Deleted replicas that are remembered: far more than late requests can name."""
REFUSED_MAX: Final = 10_000


class PartitionWaiters:
    """The purgatories of the data path, keyed by partition, and the waits of coordinators."""

    __slots__ = ("commits", "delete_records", "fetch", "produce")

    def __init__(
        self,
        commits: CommitWaiter,
        produce: PartitionPurgatory,
        fetch: PartitionPurgatory,
        delete_records: PartitionPurgatory,
    ) -> None:
        self.commits = commits
        self.produce = produce
        self.fetch = fetch
        self.delete_records = delete_records

    def check_all(self, key: TopicPartition) -> None:
        self.commits.check(key)
        self.produce.check(key)
        self.fetch.check(key)
        self.delete_records.check(key)


class RoleListener(Protocol):
    """Is called when this broker becomes the leader of a partition, or no longer is."""

    def on_lead(self, partition: HostedPartition) -> None: ...

    def on_unlead(self, key: TopicPartition) -> None: ...


class DeletedReplicas:
    """Replicas that were deleted here lately, by partition, with the topic id and leader epoch.

    A controller that got no answer asks again over another connection, and its first LeaderAndIsr
    may be carried out after the deletion that followed: that must not bring the replica back.
    """

    def __init__(self) -> None:
        self._deleted: dict[TopicPartition, tuple[TopicId, LeaderEpoch]] = {}

    def add(self, key: TopicPartition, topic_id: TopicId, leader_epoch: LeaderEpoch) -> None:
        """Remember a deletion as its StopReplica asked for it; the oldest are forgotten."""
        self._deleted.pop(key, None)
        self._deleted[key] = topic_id, leader_epoch
        if len(self._deleted) > DELETED_MAX:
            del self._deleted[next(iter(self._deleted))]

    def has(self, key: TopicPartition, topic_id: TopicId, leader_epoch: LeaderEpoch) -> bool:
        """Whether this replica was deleted: for good, or under a later leader epoch."""
        deleted_id, deleted_epoch = self._deleted.get(key, (None, NO_EPOCH))
        return deleted_id == topic_id and (
            deleted_epoch == DELETED_EPOCH or leader_epoch < deleted_epoch
        )


class RefusedAppends(dict[TopicPartition, ErrorCode]):
    """Partitions that are not hosted here, by what producers were replied: it may be soon."""

    def add(self, key: TopicPartition, code: ErrorCode) -> None:
        if code is ErrorCode.not_leader_or_follower:
            if len(self) >= REFUSED_MAX:
                self.clear()
            self[key] = code


class HostedPartitions:
    """Every partition with a replica here."""

    def __init__(
        self,
        environment: ReplicaEnvironment,
        metadata: MetadataCache,
        waiting: PartitionWaiters,
        topic_metrics: BrokerTopicMetrics,
    ) -> None:
        self.environment = environment
        self.waiting = waiting
        self.topic_metrics = topic_metrics
        self._metadata = metadata
        self.on_fault: Callable[[HostedPartition, Exception], None] | None = None
        self.on_partial_truncation: Callable[[TopicPartition, Offset], None] | None = None
        """Called with a replica whose log was cut only in part, for a passing reason."""
        self.request_flush: Callable[[HostedPartition], None] = _no_flush_loop
        """Called when an append waits for a flush; set by the flush loop."""
        self.on_first_append: Callable[[], object] | None = None
        """Called once, before the first append as leader or follower."""
        self.listeners: list[RoleListener] = []
        self._online: dict[tuple[str, int], HostedPartition] = {}
        self._offline: set[TopicPartition] = set()
        self._of_topic: dict[str, dict[int, HostedPartition]] = {}
        self.deleted = DeletedReplicas()
        self.refused_appends = RefusedAppends()

    def __iter__(self) -> Iterator[HostedPartition]:
        return iter(list(self._online.values()))

    def __len__(self) -> int:
        return len(self._online)

    @property
    def offline(self) -> frozenset[TopicPartition]:
        return frozenset(self._offline)

    @property
    def topic_names(self) -> Mapping[TopicId, str]:
        """Of every topic of the cluster, by id."""
        return self._metadata.image.names

    def replica_nodes(self, key: TopicPartition, listener: str) -> Mapping[BrokerId, Node]:
        """The live replicas of a partition, as clients of a listener see them."""
        return self._metadata.image.replica_nodes(key, listener)

    def of_topic(self, topic: str) -> list[HostedPartition]:
        """Those of one topic."""
        return list(self._of_topic.get(topic, {}).values())

    def find(self, key: tuple[str, int]) -> HostedPartition | None:
        return self._online.get(key)

    def get(self, key: TopicPartition) -> HostedPartition:
        """The replica hosted here; KafkaError with the code for the client if there is none."""
        partition = self._online.get(key)
        if partition is not None:
            return partition
        if key in self._offline:
            raise KafkaError(ErrorCode.kafka_storage_error)
        if self._metadata.image.partition(key) is not None:
            raise KafkaError(ErrorCode.not_leader_or_follower)
        raise KafkaError(ErrorCode.unknown_topic_or_partition)

    def host(self, log: Log) -> HostedPartition:
        topic, index = log.partition
        metrics = self.topic_metrics.of(topic)
        refused = self.refused_appends.pop(log.partition, ErrorCode.none)
        partition = HostedPartition(log, self.environment, metrics, refused)
        self._of_topic.setdefault(topic, {})[index] = partition
        self._online[log.partition] = partition
        self._offline.discard(log.partition)
        return partition

    def announce_first_append(self) -> None:
        on_first_append, self.on_first_append = self.on_first_append, None
        if on_first_append is not None:
            on_first_append()

    def role_changed(self, partition: HostedPartition) -> None:
        """It became leader or follower: call the listeners."""
        for listener in self.listeners:
            if partition.leadership is None:
                listener.on_unlead(partition.key)
            else:
                listener.on_lead(partition)
        partition.watchers.report_change()
        self.waiting.check_all(partition.key)

    def remove(self, key: TopicPartition) -> None:
        """This broker no longer hosts the replica; delayed operations on it fail."""
        self._remove(key, ErrorCode.not_leader_or_follower)
        self._offline.discard(key)
        self.waiting.check_all(key)

    def fail(self, partition: HostedPartition, fault: Exception) -> KafkaError:
        """Its log failed (`FAULTS`): mark it offline; the error to reply with.

        It stays online if the log only found no file descriptor.
        """
        assert self.on_fault is not None, "on_fault must be set before partitions are hosted"
        self.on_fault(partition, fault)
        return KafkaError(ErrorCode.kafka_storage_error)

    def fail_truncation(
        self, partition: HostedPartition, fault: Exception, cut_from: Offset
    ) -> None:
        """Its log was cut in part: offline, whatever the fault. Everything from an offset on may be
        gone, and must be read again if the disk is not at fault."""
        self.fail(partition, fault)
        self.mark_offline([partition.key])
        if isinstance(fault, OutOfResources):
            assert self.on_partial_truncation is not None, (
                "must be set before partitions are hosted"
            )
            self.on_partial_truncation(partition.key, cut_from)

    def mark_offline(self, keys: Iterable[TopicPartition]) -> None:
        """These replicas cannot be served: their log directory failed, or a log is corrupt."""
        for key in keys:
            self._remove(key, ErrorCode.kafka_storage_error)
            self._offline.add(key)
            self.waiting.check_all(key)

    def _remove(self, key: TopicPartition, why: ErrorCode) -> None:
        partition = self._online.pop(key, None)
        if partition is None:
            return
        partition.leadership = None
        partition.not_leader_error = why
        partition.watchers.report_change()
        for listener in self.listeners:
            listener.on_unlead(key)
        del self._of_topic[key.topic][key.partition]
        if not self._of_topic[key.topic]:
            del self._of_topic[key.topic]
            self.topic_metrics.forget(key.topic)

    def advance(self, partition: HostedPartition) -> bool:
        """Raise the high watermark if possible, and complete operations that waited for it."""
        key, waiting = partition.log.partition, self.waiting
        moved = partition.advance()
        if moved:
            waiting.commits.check(key)
            waiting.produce.check(key)
            waiting.delete_records.check(key)
        waiting.fetch.check(key)
        if partition.watchers:
            partition.watchers.report_change()
        return moved


def _no_flush_loop(partition: HostedPartition) -> None:
    raise AssertionError(f"no FlushLoop is set to flush {partition.key}")
