"""The admin for asyncio: `async with ottla.aio.Admin(bootstrap_servers=...) as admin`.

Each method calls a function of the module of its noun, such as `topics`, and adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from types import TracebackType
from typing import Any, Self

from ottla.client.admin import acls as _acls
from ottla.client.admin import brokers as _brokers
from ottla.client.admin import configs as _configs
from ottla.client.admin import group_offsets as _group_offsets
from ottla.client.admin import groups as _groups
from ottla.client.admin import log_dirs as _log_dirs
from ottla.client.admin import offsets as _offsets
from ottla.client.admin import replicas as _replicas
from ottla.client.admin import topics as _topics
from ottla.client.admin import transactions as _transactions
from ottla.client.admin.acls import EVERY_RULE, AclFilter, AclRule
from ottla.client.admin.brokers import ClusterInfo, Feature
from ottla.client.admin.configs import ConfigChange, ConfigEntry, Resource, ResourceKind
from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.admin.groups import Group, GroupListing, GroupMember
from ottla.client.admin.log_dirs import LogDir, Replica, ReplicaLogDir
from ottla.client.admin.offsets import ListedOffset, OffsetSpec
from ottla.client.admin.replicas import ElectionKind, Reassignment
from ottla.client.admin.session import Outcomes, Session
from ottla.client.admin.topics import CreatedTopic, MorePartitions, NewTopic, Topic
from ottla.client.admin.transactions import (
    ActiveProducer,
    FencedProducer,
    Transaction,
    TransactionListing,
)
from ottla.client.cluster import Cluster
from ottla.config.client import AdminConfig
from ottla.model.clock import SystemClock
from ottla.model.ids import TopicPartition
from ottla.security.acl import Filter, Rule


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

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> Outcomes[str, CreatedTopic]:
        """Create topics; with `validate_only` just say whether it would work."""
        return await _topics.create_topics(self, topics, validate_only=validate_only)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> CreatedTopic:
        """Create one topic, or raise."""
        return await _topics.create_topic(
            self,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=configs,
        )

    async def delete_topics(self, names: Iterable[str]) -> Outcomes[str, None]:
        """Delete topics with all their records."""
        return await _topics.delete_topics(self, names)

    async def delete_topic(self, name: str) -> None:
        """Delete one topic, or raise."""
        await _topics.delete_topic(self, name)

    async def create_partitions(
        self, topics: Mapping[str, MorePartitions | int], *, validate_only: bool = False
    ) -> Outcomes[str, None]:
        """Let topics have more partitions; there is no way back to fewer."""
        return await _topics.create_partitions(self, topics, validate_only=validate_only)

    async def list_topics(self, *, internal: bool = False) -> list[str]:
        """Every topic's name, in order; the brokers' own only when asked for."""
        return await _topics.list_topics(self, internal=internal)

    async def describe_topics(self, names: Iterable[str]) -> Outcomes[str, Topic]:
        """Topics with their partitions: leaders, replicas, who is in sync."""
        return await _topics.describe_topics(self, names)

    async def describe_topic(self, name: str) -> Topic:
        """One topic, or raise."""
        return await _topics.describe_topic(self, name)

    async def describe_configs(
        self,
        resources: Iterable[Resource],
        *,
        names: Iterable[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> Outcomes[Resource, dict[str, ConfigEntry]]:
        """The settings of each resource by name; all of them, or those named."""
        return await _configs.describe_configs(
            self, resources, names=names, synonyms=synonyms, documentation=documentation
        )

    async def alter_configs(
        self, configs: Mapping[Resource, Mapping[str, str]], *, validate_only: bool = False
    ) -> Outcomes[Resource, None]:
        """Replace all settings of each resource; what is not named goes back to its default."""
        return await _configs.alter_configs(self, configs, validate_only=validate_only)

    async def incremental_alter_configs(
        self,
        changes: Mapping[Resource, Mapping[str, ConfigChange | str | None]],
        *,
        validate_only: bool = False,
    ) -> Outcomes[Resource, None]:
        """Change single settings; a text sets one, None resets it to its default."""
        return await _configs.incremental_alter_configs(self, changes, validate_only=validate_only)

    async def list_config_resources(self, kinds: Iterable[ResourceKind] = ()) -> list[Resource]:
        """What has settings that can be described: of these kinds, or of every kind."""
        return await _configs.list_config_resources(self, kinds)

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, OffsetSpec | int], *, read_committed: bool = False
    ) -> Outcomes[TopicPartition, ListedOffset]:
        """Where each partition begins or ends, or the first offset at a time or later.

        With `read_committed` the end is before the first transaction that is still open.
        """
        return await _offsets.list_offsets(self, wanted, read_committed=read_committed)

    async def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> Outcomes[TopicPartition, int]:
        """Forget the records below an offset of each partition; where it begins then.

        The offset -1 stands for everything that readers can see.
        """
        return await _offsets.delete_records(self, before)

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[GroupListing]:
        """Every group that any broker coordinates, in the order of their names."""
        return await _groups.list_groups(self, states=states, types=types)

    async def describe_groups(self, ids: Iterable[str]) -> Outcomes[str, Group]:
        """Groups with their members and what each is assigned."""
        return await _groups.describe_groups(self, ids)

    async def describe_group(self, id: str) -> Group:
        """One group, or raise."""
        return await _groups.describe_group(self, id)

    async def delete_groups(self, ids: Iterable[str]) -> Outcomes[str, None]:
        """Forget groups and their offsets; only groups without members can go."""
        return await _groups.delete_groups(self, ids)

    async def remove_group_members(
        self, group: str, members: Iterable[GroupMember], *, reason: str | None = None
    ) -> Outcomes[str, None]:
        """Put members out of a group, by their ids as `describe_groups` gives them."""
        return await _groups.remove_group_members(self, group, members, reason=reason)

    async def list_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> Outcomes[TopicPartition, CommittedOffset]:
        """What a group has committed, for these partitions or for all; without those it has not.

        With `require_stable` it waits for transactions that are about to change them.
        """
        return await _group_offsets.list_group_offsets(
            self, group, partitions, require_stable=require_stable
        )

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
    ) -> Outcomes[TopicPartition, None]:
        """Set where a group without members will go on."""
        return await _group_offsets.alter_group_offsets(self, group, offsets)

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, None]:
        """Forget what a group committed for partitions that none of its members subscribes to."""
        return await _group_offsets.delete_group_offsets(self, group, partitions)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """List transactional ids of all coordinators; `pattern` is a whole RE2 expression."""
        return await _transactions.list_transactions(
            self,
            states=states,
            producer_ids=producer_ids,
            longer_than_ms=longer_than_ms,
            pattern=pattern,
        )

    async def describe_transactions(self, ids: Iterable[str]) -> Outcomes[str, Transaction]:
        """How transactions stand, and which partitions they touch."""
        return await _transactions.describe_transactions(self, ids)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, tuple[ActiveProducer, ...]]:
        """The producers that each partition's leader remembers."""
        return await _transactions.describe_producers(self, partitions)

    async def abort_transaction(self, partition: TopicPartition, producer: ActiveProducer) -> None:
        """Write the end of a transaction that hangs in one partition: its coordinator forgot it.

        Only for such: a transaction that its coordinator knows is ended by `fence_producers`.
        """
        await _transactions.abort_transaction(self, partition, producer)

    async def fence_producers(self, ids: Iterable[str]) -> Outcomes[str, FencedProducer]:
        """Take transactional ids from whoever has them; what they left open is aborted."""
        return await _transactions.fence_producers(self, ids)

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        kind: ElectionKind = ElectionKind.PREFERRED,
    ) -> Outcomes[TopicPartition, None]:
        """Elect the preferred leader, or any leader; None means every partition."""
        return await _replicas.elect_leaders(self, partitions, kind=kind)

    async def alter_partition_reassignments(
        self, moves: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Outcomes[TopicPartition, None]:
        """Move partitions to these brokers, the preferred leader first; None calls a move off."""
        return await _replicas.alter_partition_reassignments(self, moves)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The moves under way, of these partitions or of all."""
        return await _replicas.list_partition_reassignments(self, partitions)

    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> Outcomes[int, tuple[LogDir, ...]]:
        """What lies in each directory of each broker: of these partitions, or everything."""
        return await _log_dirs.describe_log_dirs(self, brokers, partitions)

    async def describe_replica_log_dirs(
        self, replicas: Iterable[Replica]
    ) -> Outcomes[Replica, ReplicaLogDir]:
        """Where single replicas are, and where they go."""
        return await _log_dirs.describe_replica_log_dirs(self, replicas)

    async def alter_replica_log_dirs(self, moves: Mapping[Replica, str]) -> Outcomes[Replica, None]:
        """Move replicas to another directory of their broker, while they go on being used."""
        return await _log_dirs.alter_replica_log_dirs(self, moves)

    async def create_acls(self, rules: Iterable[Rule]) -> Outcomes[AclRule, None]:
        """Add access rules; one that is there already stays as it is."""
        return await _acls.create_acls(self, rules)

    async def describe_acls(self, filter: Filter = EVERY_RULE) -> list[AclRule]:
        """The access rules that a filter means, in order; all of them unless told otherwise."""
        return await _acls.describe_acls(self, filter)

    async def delete_acls(self, filters: Iterable[Filter]) -> Outcomes[AclFilter, list[AclRule]]:
        """Take access rules away: by filter, those that were taken."""
        return await _acls.delete_acls(self, filters)

    async def describe_cluster(self) -> ClusterInfo:
        """The cluster's id, its controller and its brokers."""
        return await _brokers.describe_cluster(self)

    async def describe_features(self) -> Mapping[str, Feature]:
        """The features of the cluster by name."""
        return await _brokers.describe_features(self)

    async def describe_api_versions(
        self, broker: int | None = None
    ) -> Mapping[int, tuple[int, int]]:
        """The versions of every API that a broker offers, by API key, both ends included."""
        return await _brokers.describe_api_versions(self, broker)
