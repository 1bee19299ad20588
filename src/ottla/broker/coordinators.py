"""The coordinators of a broker: groups and transactions, each on its own internal topic.

Owns how these parts are connected. They become active when the controller makes this broker the
leader of partitions of those topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeAlias
from uuid import UUID

from ottla.broker.data_plane import DataPlane
from ottla.broker.environment import Environment
from ottla.broker.memory import memory_shares
from ottla.broker.transaction_coordinator import ClusterAccess, build_transaction_coordinator
from ottla.config.dynamic import DynamicConfig
from ottla.coordinator.group.consumer.service import ConsumerGroups
from ottla.coordinator.group.memory import GroupMemory, OffsetMemory
from ottla.coordinator.group.metrics import Counts, publish
from ottla.coordinator.group.service import Groups
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.internal_topic_log import InternalTopicLog
from ottla.coordinator.runtime import Runtime, RuntimeContext
from ottla.coordinator.txn.shard import TxnShard
from ottla.model.ids import CONSUMER_OFFSETS
from ottla.protocol.records.compression import Codec

Spawn: TypeAlias = Callable[[Coroutine[object, None, None]], asyncio.Task[None] | None]


class Coordinators:
    def __init__(
        self,
        environment: Environment,
        config: DynamicConfig,
        data: DataPlane,
        cluster: ClusterAccess,
        spawn: Spawn,
    ) -> None:
        context = RuntimeContext(data.hosted, data.metadata, data.timers, spawn)
        counts = Counts()
        groups = _group_runtime(environment, config, data, context, counts)
        publish(data.registry, counts, lambda: [owned.shard for owned in groups.active()])
        self.groups = Groups(groups, ConsumerGroups(groups, data.hosted.environment))
        txns = build_transaction_coordinator(
            config, data, context, self.groups.runtime,
            cluster=cluster, spawn=spawn, memory_bytes=environment.memory_bytes,
        )  # fmt: skip
        self.txns = txns.service
        self._txn_coordinator = txns
        self._runtimes: tuple[Runtime[GroupShard] | Runtime[TxnShard], ...] = (
            self.groups.runtime,
            txns.runtime,
        )
        data.hosted.listeners += self._runtimes

    def close(self) -> None:
        self._txn_coordinator.close()
        for runtime in self._runtimes:
            runtime.close()


def _group_runtime(
    environment: Environment,
    config: DynamicConfig,
    data: DataPlane,
    context: RuntimeContext,
    counts: Counts,
) -> Runtime[GroupShard]:
    settings = config.current
    memory = GroupMemory(), OffsetMemory()
    shares = memory_shares(settings, environment.memory_bytes)

    def new_id() -> str:
        return str(UUID(int=environment.dice.getrandbits(128), version=4))

    return Runtime(
        CONSUMER_OFFSETS,
        lambda _: GroupShard(
            lambda: group_limits(config, shares.groups, shares.offsets),
            new_id,
            lambda: data.metadata.image,
            counts,
            memory,
        ),
        context,
        InternalTopicLog(
            data.hosted,
            timeout_ms=settings.offsets_commit_timeout_ms,
            codec=Codec(settings.offsets_topic_compression_codec),
        ),
        settings.offsets_load_buffer_size,
    )


def group_limits(
    config: DynamicConfig, memory_bytes: int = -1, offsets_memory_bytes: int = -1
) -> GroupSettings:
    settings = config.current
    return GroupSettings(
        min_session_timeout_ms=settings.group_min_session_timeout_ms,
        max_session_timeout_ms=settings.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        max_size=settings.group_max_size,
        consumer_protocol="consumer" in settings.group_coordinator_rebalance_protocols,
        consumer_session_timeout_ms=settings.group_consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        paces=config.groups,
        consumer_max_size=settings.group_consumer_max_size,
        assignors=settings.assignor_names,
        upgrades=settings.group_consumer_migration_policy in ("bidirectional", "upgrade"),
        downgrades=settings.group_consumer_migration_policy in ("bidirectional", "downgrade"),
        regex_refresh_interval_ms=settings.group_consumer_regex_refresh_interval_ms,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=settings.offsets_retention_check_interval_ms,
        memory_bytes=memory_bytes,
        offsets_memory_bytes=offsets_memory_bytes,
    )
