"""The admin for asyncio: `async with ottla.aio.Admin(bootstrap_servers=...) as admin`.

Owns: the table of calls; each is a function of its noun's module. Never: does a call's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import TracebackType
from typing import Any, Self

from ottla.client.admin import (
    acls,
    brokers,
    configs,
    group_offsets,
    groups,
    log_dirs,
    offsets,
    replicas,
    topics,
    transactions,
)
from ottla.client.admin.session import Session
from ottla.client.cluster import Cluster
from ottla.config.client import AdminConfig
from ottla.model.clock import SystemClock


class Admin(Session):
    """Looks at a cluster and changes it.

    Options are Kafka's admin settings with underscores (`bootstrap_servers`,
    `request_timeout_ms`, `default_api_timeout_ms`), or under Kafka's own names in `config`.
    """

    def __init__(self, *, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        settings = AdminConfig.from_options(options, config)
        super().__init__(Cluster(settings, SystemClock(), Random()), settings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self.cluster.close()

    create_topics = topics.create_topics
    create_topic = topics.create_topic
    delete_topics = topics.delete_topics
    delete_topic = topics.delete_topic
    create_partitions = topics.create_partitions
    list_topics = topics.list_topics
    describe_topics = topics.describe_topics
    describe_topic = topics.describe_topic

    describe_configs = configs.describe_configs
    alter_configs = configs.alter_configs
    incremental_alter_configs = configs.incremental_alter_configs
    list_config_resources = configs.list_config_resources

    list_offsets = offsets.list_offsets
    delete_records = offsets.delete_records

    list_groups = groups.list_groups
    describe_groups = groups.describe_groups
    describe_group = groups.describe_group
    delete_groups = groups.delete_groups
    remove_group_members = groups.remove_group_members
    list_group_offsets = group_offsets.list_group_offsets
    alter_group_offsets = group_offsets.alter_group_offsets
    delete_group_offsets = group_offsets.delete_group_offsets

    list_transactions = transactions.list_transactions
    describe_transactions = transactions.describe_transactions
    describe_producers = transactions.describe_producers
    abort_transaction = transactions.abort_transaction
    fence_producers = transactions.fence_producers

    elect_leaders = replicas.elect_leaders
    alter_partition_reassignments = replicas.alter_partition_reassignments
    list_partition_reassignments = replicas.list_partition_reassignments

    describe_log_dirs = log_dirs.describe_log_dirs
    describe_replica_log_dirs = log_dirs.describe_replica_log_dirs
    alter_replica_log_dirs = log_dirs.alter_replica_log_dirs

    create_acls = acls.create_acls
    describe_acls = acls.describe_acls
    delete_acls = acls.delete_acls

    describe_cluster = brokers.describe_cluster
    describe_features = brokers.describe_features
    describe_api_versions = brokers.describe_api_versions
