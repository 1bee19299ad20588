"""The transaction coordinator of a broker, put together.

Owns how its parts know each other: shards hand decided transactions to `Finishing`, which writes
markers, which on the offsets topic go through the coordinator of groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from ottla.broker.data_plane import Data
from ottla.broker.memory_shares import memory_shares
from ottla.config.dynamic import DynamicConfig
from ottla.coordinator.internal_topic_log import Journal
from ottla.coordinator.runtime import Ground, Runtime
from ottla.coordinator.txn.completion import Finishing
from ottla.coordinator.txn.markers import Markers, OffsetMarkers
from ottla.coordinator.txn.service import Transactions, TxnLimits
from ottla.coordinator.txn.shard import Intervals, TxnShard
from ottla.coordinator.txn.verification import Gate
from ottla.metadata.cache import MetadataCache
from ottla.model.ids import TRANSACTION_STATE, ProducerId, TopicPartition

APPEND_WITHIN_MS = 5_000
"""As long as Kafka waits for a change of a transaction to be replicated."""


class TxnParts(NamedTuple):
    runtime: Runtime[TxnShard]
    finishing: Finishing
    service: Transactions


def build_transactions(
    config: DynamicConfig,
    data: Data,
    ground: Ground,
    offsets: OffsetMarkers,
    *,
    next_producer_id: Callable[[], Awaitable[ProducerId]],
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    memory_bytes: int = 8 << 30,
) -> TxnParts:
    settings = config.current
    appends = data.services.appends
    markers = Markers(data.hosted, offsets)
    finishing = Finishing(markers, spawn, ground.timers, partial(_is_deleted, ground.metadata))
    intervals = Intervals(
        settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        settings.transaction_remove_expired_transaction_cleanup_interval_ms,
        settings.transactional_id_expiration_ms,
    )
    runtime = Runtime(
        TRANSACTION_STATE,
        lambda _: TxnShard(intervals, finishing),
        ground,
        Journal(data.hosted, timeout_ms=APPEND_WITHIN_MS),
        settings.transaction_state_log_load_buffer_size,
    )
    finishing.runtime = runtime
    memory = memory_shares(settings, memory_bytes).transactional_ids
    service = Transactions(
        runtime, finishing, markers, next_producer_id, lambda: _limits(config, memory)
    )
    appends.gate = Gate(service, lambda: config.current.transaction_partition_verification_enable)
    return TxnParts(runtime, finishing, service)


def _is_deleted(metadata: MetadataCache, partition: TopicPartition) -> bool:
    """Whether the cluster has no such partition; False before the controller has said which."""
    image = metadata.image
    return TRANSACTION_STATE in image.topics and image.partition(partition) is None


def _limits(config: DynamicConfig, memory_bytes: int) -> TxnLimits:
    now = config.current
    return TxnLimits(
        now.transaction_max_timeout_ms, now.transaction_two_phase_commit_enable, memory_bytes
    )
