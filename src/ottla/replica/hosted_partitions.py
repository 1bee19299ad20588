"""Which partitions this broker holds, and who must hear when one of them changes.

Owns the map from partition to replica and the partitions lost with a failed directory. Never
appends, reads or elects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias

from ottla.delay.purgatory import Purgatory
from ottla.log.log import Log
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicId, TopicPartition
from ottla.replica.commit_waiter import CommitWaiter
from ottla.replica.environment import ReplicaEnvironment
from ottla.replica.partition import HostedPartition
from ottla.replica.topic_metrics import BrokerTopicMetrics

Parked: TypeAlias = Purgatory[TopicPartition]


class PartitionWaiters:
    """The three purgatories of the data path, keyed by partition, and the waits of our own."""

    __slots__ = ("commits", "delete_records", "fetch", "produce")

    def __init__(
        self, commits: CommitWaiter, produce: Parked, fetch: Parked, delete_records: Parked
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
    """Hears of partitions that begin and cease to be led here."""

    def on_lead(self, partition: HostedPartition) -> None: ...

    def on_unlead(self, key: TopicPartition) -> None: ...


class HostedPartitions:
    """Every partition with a replica here."""

    def __init__(
        self,
        around: ReplicaEnvironment,
        metadata: MetadataCache,
        waiting: PartitionWaiters,
        traffic: BrokerTopicMetrics,
    ) -> None:
        self.around = around
        self.waiting = waiting
        self.traffic = traffic
        self._metadata = metadata
        self.on_fault: Callable[[HostedPartition, Exception], None] | None = None
        self.want_flush: Callable[[HostedPartition], None] = _no_flush_loop
        """An append waits for the disk; set by whoever flushes."""
        self.listeners: list[RoleListener] = []
        self._online: dict[TopicPartition, HostedPartition] = {}
        self._offline: set[TopicPartition] = set()
        self._of_topic: dict[str, dict[int, HostedPartition]] = {}

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

    def of_topic(self, topic: str) -> list[HostedPartition]:
        """Those of one topic."""
        return list(self._of_topic.get(topic, {}).values())

    def find(self, key: TopicPartition) -> HostedPartition | None:
        return self._online.get(key)

    def get(self, key: TopicPartition) -> HostedPartition:
        """The replica held here, or the refusal a client must hear."""
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
        partition = HostedPartition(log, self.around, self.traffic.of(topic))
        self._of_topic.setdefault(topic, {})[index] = partition
        self._online[log.partition] = partition
        self._offline.discard(log.partition)
        return partition

    def role_changed(self, partition: HostedPartition) -> None:
        """It was told to lead, or to follow."""
        for listener in self.listeners:
            if partition.leadership is None:
                listener.on_unlead(partition.key)
            else:
                listener.on_lead(partition)
        self.waiting.check_all(partition.key)

    def drop(self, key: TopicPartition) -> None:
        """This replica is no longer ours; whoever waits for it hears so."""
        self._remove(key, ErrorCode.not_leader_or_follower)
        self._offline.discard(key)
        self.waiting.check_all(key)

    def fail(self, partition: HostedPartition, fault: Exception) -> KafkaError:
        """Its log cannot be gone on with (`FAULTS`): it goes offline, and this says so."""
        assert self.on_fault is not None, "on_fault must be set before partitions are hosted"
        self.on_fault(partition, fault)
        return KafkaError(ErrorCode.kafka_storage_error)

    def lose(self, keys: Iterable[TopicPartition]) -> None:
        """These replicas cannot be served any more: their directory failed, or they rotted."""
        for key in keys:
            self._remove(key, ErrorCode.kafka_storage_error)
            self._offline.add(key)
            self.waiting.check_all(key)

    def _remove(self, key: TopicPartition, why: ErrorCode) -> None:
        partition = self._online.pop(key, None)
        if partition is None:
            return
        partition.leadership = None
        partition.unled = why
        for listener in self.listeners:
            listener.on_unlead(key)
        del self._of_topic[key.topic][key.partition]
        if not self._of_topic[key.topic]:
            del self._of_topic[key.topic]
            self.traffic.forget(key.topic)

    def advance(self, partition: HostedPartition) -> bool:
        """Raise the high watermark if it may rise, and wake whoever waited for that."""
        key, waiting = partition.log.partition, self.waiting
        moved = partition.advance()
        if moved:
            waiting.commits.check(key)
            waiting.produce.check(key)
            waiting.delete_records.check(key)
        waiting.fetch.check(key)
        return moved


def _no_flush_loop(partition: HostedPartition) -> None:
    raise AssertionError(f"no FlushLoop is set to flush {partition.key}")
