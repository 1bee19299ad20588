"""The transaction coordinator of a broker, assembled from its parts.

Owns how the parts are connected: shards hand prepared transactions to `TransactionCompletion`;
`MarkerRouter` writes their markers, here or on other brokers; markers of the offsets topic go
through the group coordinator of the broker that leads the partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import NamedTuple, Protocol

from ottla.broker.data_plane import DataPlane
from ottla.broker.memory import memory_shares
from ottla.config.dynamic import DynamicConfig
from ottla.coordinator.internal_topic_log import InternalTopicLog
from ottla.coordinator.request_queues import Link, OtherBrokers
from ottla.coordinator.runtime import Runtime, RuntimeContext
from ottla.coordinator.txn.completion import TransactionCompletion
from ottla.coordinator.txn.marker_routing import MarkerRouter
from ottla.coordinator.txn.markers import MarkerAppender, OffsetMarkers
from ottla.coordinator.txn.remote_coordinator import RemoteCoordinators
from ottla.coordinator.txn.service import Transactions, TxnLimits
from ottla.coordinator.txn.shard import Intervals, TxnShard
from ottla.coordinator.txn.verification import CoordinatorVerifier
from ottla.metadata.cache import MetadataCache
from ottla.model.ids import TRANSACTION_STATE, BrokerId, ProducerId, TopicPartition
from ottla.store import paths
from ottla.store.nodes import TopicNode
from ottla.store.port import SessionExpired, Store, StoreUnavailable

APPEND_WITHIN_MS = 5_000
"""How long Kafka waits until a change of a transaction is replicated."""


class Links(Protocol):
    """The connections of this broker to others, one for each purpose."""

    def to(self, broker: BrokerId, purpose: str) -> Link: ...


class ClusterAccess(NamedTuple):
    """What the coordinator uses of the cluster outside this broker."""

    links: Links
    store: Store
    next_producer_id: Callable[[], Awaitable[ProducerId]]


class TransactionCoordinator(NamedTuple):
    runtime: Runtime[TxnShard]
    finishing: TransactionCompletion
    service: Transactions
    router: MarkerRouter
    remote: RemoteCoordinators

    def close(self) -> None:
        """Stop retries and requests to other brokers."""
        self.finishing.close()
        self.router.close()
        self.remote.close()


def build_transaction_coordinator(
    config: DynamicConfig,
    data: DataPlane,
    context: RuntimeContext,
    offsets: OffsetMarkers,
    *,
    cluster: ClusterAccess,
    spawn: Callable[[Coroutine[object, None, None]], asyncio.Task[None] | None],
    memory_bytes: int = 8 << 30,
) -> TransactionCoordinator:
    settings = config.current
    appends = data.services.appends
    broker_id = data.hosted.environment.broker_id

    def others(purpose: str) -> OtherBrokers:
        connect = partial(_link, cluster.links, purpose)
        return OtherBrokers(connect, context.metadata, context.timers, spawn)

    remote = RemoteCoordinators(broker_id, others("txn-verification"))
    markers = MarkerAppender(data.hosted, offsets, remote.guards.on_marker)
    router = MarkerRouter(markers, data.hosted, others("txn-markers"))
    completion = TransactionCompletion(
        router, spawn, context.timers, partial(find_deleted, context.metadata, cluster.store)
    )
    intervals = Intervals(
        settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        settings.transaction_remove_expired_transaction_cleanup_interval_ms,
        settings.transactional_id_expiration_ms,
    )
    runtime = Runtime(
        TRANSACTION_STATE,
        lambda _: TxnShard(intervals, completion),
        context,
        InternalTopicLog(data.hosted, timeout_ms=APPEND_WITHIN_MS),
        settings.transaction_state_log_load_buffer_size,
    )
    completion.runtime = runtime
    memory = memory_shares(settings, memory_bytes).transactional_ids
    service = Transactions(
        runtime, completion, markers, cluster.next_producer_id, lambda: _limits(config, memory),
        remote=remote,
    )  # fmt: skip
    appends.verifier = CoordinatorVerifier(
        service, lambda: config.current.transaction_partition_verification_enable
    )
    return TransactionCoordinator(runtime, completion, service, router, remote)


def _link(links: Links, purpose: str, broker: BrokerId) -> Link:
    return links.to(broker, purpose)


async def find_deleted(
    metadata: MetadataCache, store: Store, partitions: Iterable[TopicPartition]
) -> frozenset[TopicPartition]:
    """Those that neither the metadata cache nor the metadata store has.

    The cache alone does not tell: after a start it is incomplete for a while, and the partition may
    be on other brokers only. While the store cannot be asked, nothing counts as deleted.
    """
    image = metadata.image
    unknown: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        if image.partition(partition) is None:
            unknown.setdefault(partition.topic, []).append(partition)
    deleted: set[TopicPartition] = set()
    for topic, missing in unknown.items():
        try:
            node = await store.get(paths.topic(topic))
        except (StoreUnavailable, SessionExpired):
            break
        existing = () if node is None else TopicNode.decode(node.data).partitions
        deleted.update(partition for partition in missing if partition.partition not in existing)
    return frozenset(deleted)


def _limits(config: DynamicConfig, memory_bytes: int) -> TxnLimits:
    settings = config.current
    return TxnLimits(
        settings.transaction_max_timeout_ms,
        settings.transaction_two_phase_commit_enable,
        memory_bytes,
    )
