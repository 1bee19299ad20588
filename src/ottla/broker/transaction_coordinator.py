"""The transaction coordinator of a broker, assembled from its parts.

Owns how the parts are connected: shards hand prepared transactions to `TransactionCompletion`;
`MarkerRouter` writes their markers, here or on other brokers; markers of the offsets topic go
through the group coordinator of the broker that leads the partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple, Protocol

from ottla.broker.data_plane import DataPlane
from ottla.broker.memory import memory_shares
from ottla.config.dynamic import DynamicConfig
from ottla.coordinator.internal_topic_log import InternalTopicLog
from ottla.coordinator.request_queues import Link
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

APPEND_WITHIN_MS = 5_000
"""How long Kafka waits until a change of a transaction is replicated."""


class Links(Protocol):
    """The connections of this broker to others, one for each purpose."""

    def to(self, broker: BrokerId, purpose: str) -> Link: ...


class TransactionCoordinator(NamedTuple):
    runtime: Runtime[TxnShard]
    finishing: TransactionCompletion
    service: Transactions


def build_transaction_coordinator(
    config: DynamicConfig,
    data: DataPlane,
    context: RuntimeContext,
    offsets: OffsetMarkers,
    *,
    next_producer_id: Callable[[], Awaitable[ProducerId]],
    links: Links,
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    memory_bytes: int = 8 << 30,
) -> TransactionCoordinator:
    settings = config.current
    appends = data.services.appends
    broker_id = data.hosted.environment.broker_id
    remote = RemoteCoordinators(
        broker_id, context.metadata, partial(_link, links, "txn-verification"), spawn
    )
    markers = MarkerAppender(data.hosted, offsets, remote.guards.on_marker)
    router = MarkerRouter(
        markers, data.hosted, context.metadata, partial(_link, links, "txn-markers"), spawn
    )
    completion = TransactionCompletion(
        router, spawn, context.timers, partial(_is_deleted, context.metadata, data)
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
        runtime, completion, markers, next_producer_id, lambda: _limits(config, memory),
        remote=remote,
    )  # fmt: skip
    appends.verifier = CoordinatorVerifier(
        service, lambda: config.current.transaction_partition_verification_enable
    )
    return TransactionCoordinator(runtime, completion, service)


def _link(links: Links, purpose: str, broker: BrokerId) -> Link:
    return links.to(broker, purpose)


def _is_deleted(metadata: MetadataCache, data: DataPlane, partition: TopicPartition) -> bool:
    """Whether the partition does not exist any more.

    After a start the metadata arrives in several requests, so a partition that it does not name may
    only be late: a log of it must not be here either.
    """
    image = metadata.image
    named = TRANSACTION_STATE not in image.topics or image.partition(partition) is not None
    return not named and not data.may_have_log(partition)


def _limits(config: DynamicConfig, memory_bytes: int) -> TxnLimits:
    settings = config.current
    return TxnLimits(
        settings.transaction_max_timeout_ms,
        settings.transaction_two_phase_commit_enable,
        memory_bytes,
    )
