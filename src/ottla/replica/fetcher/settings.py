"""What fetchers are given: settings, the parts of the replica layer they use, and metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.model.ids import BrokerEpoch
from ottla.model.metrics import Registry
from ottla.replica.fetch.replication_quota import ReplicationQuota
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition
from ottla.replica.topic_metrics import TopicMetrics


class FetcherSettings(NamedTuple):
    """The settings of a fetch, under Kafka's names in `of`."""

    wait_ms: int
    min_bytes: int
    max_bytes: int
    response_bytes: int
    backoff_ms: int
    timeout_ms: int

    @classmethod
    def of(cls, config: BrokerConfig) -> FetcherSettings:
        return cls(
            wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_max_bytes,
            response_bytes=config.replica_fetch_response_max_bytes,
            backoff_ms=config.replica_fetch_backoff_ms,
            timeout_ms=config.replica_socket_timeout_ms,
        )


class FetcherMetrics:
    """Requests and bytes of all fetchers."""

    def __init__(self, registry: Registry, total: TopicMetrics) -> None:
        self._total = total
        self.requests = registry.counter(
            "kafka_server_fetcherstats_requests_total", "Fetch requests of followers here."
        )
        self.bytes = registry.counter(
            "kafka_server_fetcherstats_bytes_total", "Bytes that followers here have appended."
        )

    def on_appended(self, partition: HostedPartition, size: int) -> None:
        self.bytes.value += size
        partition.topic_metrics.replication_bytes_in.value += size
        self._total.replication_bytes_in.value += size


class Replication(NamedTuple):
    """The parts of the replica layer that every fetcher uses."""

    hosted: HostedPartitions
    flushes: FlushLoop
    metrics: FetcherMetrics
    quota: ReplicationQuota
    broker_epoch: Callable[[], BrokerEpoch]
    checkpoint_offsets: Callable[[], Awaitable[None]]
    """Writes recovery points and log start offsets, lowered by truncations."""
