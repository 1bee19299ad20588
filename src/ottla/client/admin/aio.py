"""The admin for asyncio: `async with ottla.aio.Admin(bootstrap_servers=...) as admin`.

Each method calls a function of the module of its noun, such as `topics`, and adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from types import TracebackType
from typing import Self

from ottla.client.admin import acls as _acls
from ottla.client.admin import brokers as _brokers
from ottla.client.admin import configs as _configs
from ottla.client.admin import group_offsets as _group_offsets
from ottla.client.admin import groups as _groups
from ottla.client.admin import log_dirs as _log_dirs
from ottla.client.admin import offsets as _offsets
from ottla.client.admin import quotas as _quotas
from ottla.client.admin import replicas as _replicas
from ottla.client.admin import scram_users as _scram_users
from ottla.client.admin import tokens as _tokens
from ottla.client.admin import topics as _topics
from ottla.client.admin import transactions as _transactions
from ottla.client.admin.acls import EVERY_RULE, AclFilter, AclRule
from ottla.client.admin.brokers import ClusterInfo, Feature
from ottla.client.admin.configs import ConfigChange, ConfigEntry, Resource, ResourceKind
from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.admin.groups import Group, GroupListing, GroupMember
from ottla.client.admin.log_dirs import LogDir, Replica, ReplicaLogDir
from ottla.client.admin.offsets import ListedOffset, OffsetSpec
from ottla.client.admin.quotas import QuotaChanges, QuotaFilter
from ottla.client.admin.replicas import ElectionKind, Reassignment
from ottla.client.admin.scram_users import ScramDeletion, ScramUpsertion
from ottla.client.admin.session import Outcomes, Session
from ottla.client.admin.tokens import DelegationToken
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
from ottla.security.quotas.entities import QuotaEntity


class Admin(Session):
    """Looks at a cluster and changes it.

    Options are Kafka's admin settings with underscores (`bootstrap_servers`,
    `request_timeout_ms`, `default_api_timeout_ms`), or under Kafka's own names in `config`.
    """

    def __init__(self, *, config: Mapping[str, object] | None = None, **options: object) -> None:
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
        """Close all connections."""
        self.cluster.close()

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> Outcomes[str, CreatedTopic]:
        """Create topics; with `validate_only` only check whether it would work."""
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
        """Add partitions to topics; the number can never be reduced."""
        return await _topics.create_partitions(self, topics, validate_only=validate_only)

    async def list_topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted; internal topics only if `internal`."""
        return await _topics.list_topics(self, internal=internal)

    async def describe_topics(self, names: Iterable[str]) -> Outcomes[str, Topic]:
        """Topics with their partitions: leaders, replicas, in-sync replicas."""
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
        """Replace all settings of each resource; those not named are reset to their defaults."""
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
        """The resources that have settings: of these kinds, or of every kind."""
        return await _configs.list_config_resources(self, kinds)

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, OffsetSpec | int], *, read_committed: bool = False
    ) -> Outcomes[TopicPartition, ListedOffset]:
        """The start or end offset of each partition, or the first offset at or after a timestamp.

        With `read_committed` the end offset is the last stable offset.
        """
        return await _offsets.list_offsets(self, wanted, read_committed=read_committed)

    async def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> Outcomes[TopicPartition, int]:
        """Delete the records below an offset of each partition; its new start offset.

        The offset -1 stands for the high watermark.
        """
        return await _offsets.delete_records(self, before)

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[GroupListing]:
        """All groups of all brokers, sorted by id."""
        return await _groups.list_groups(self, states=states, types=types)

    async def describe_groups(self, ids: Iterable[str]) -> Outcomes[str, Group]:
        """Groups with their members and assignments."""
        return await _groups.describe_groups(self, ids)

    async def describe_group(self, id: str) -> Group:
        """One group, or raise."""
        return await _groups.describe_group(self, id)

    async def delete_groups(self, ids: Iterable[str]) -> Outcomes[str, None]:
        """Delete groups and their offsets; a group must have no members."""
        return await _groups.delete_groups(self, ids)

    async def remove_group_members(
        self, group: str, members: Iterable[GroupMember], *, reason: str | None = None
    ) -> Outcomes[str, None]:
        """Remove members from a group, as `describe_groups` returns them."""
        return await _groups.remove_group_members(self, group, members, reason=reason)

    async def list_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> Outcomes[TopicPartition, CommittedOffset]:
        """A group's committed offsets, for these partitions or for all that have one.

        With `require_stable` it waits for open transactions that would change them.
        """
        return await _group_offsets.list_group_offsets(
            self, group, partitions, require_stable=require_stable
        )

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
    ) -> Outcomes[TopicPartition, None]:
        """Set the committed offsets of a group that has no members."""
        return await _group_offsets.alter_group_offsets(self, group, offsets)

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, None]:
        """Delete committed offsets of partitions that no member of the group subscribes to."""
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
        """The state of transactions and their partitions."""
        return await _transactions.describe_transactions(self, ids)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, tuple[ActiveProducer, ...]]:
        """The active producers of each partition, as its leader knows them."""
        return await _transactions.describe_producers(self, partitions)

    async def abort_transaction(self, partition: TopicPartition, producer: ActiveProducer) -> None:
        """Abort a hanging transaction in one partition: one that its coordinator no longer knows.

        Use `fence_producers` for a transaction that its coordinator knows.
        """
        await _transactions.abort_transaction(self, partition, producer)

    async def fence_producers(self, ids: Iterable[str]) -> Outcomes[str, FencedProducer]:
        """Fence the producers of transactional ids; their open transactions are aborted."""
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
        """Move partitions to these brokers, the preferred leader first; None cancels a move."""
        return await _replicas.alter_partition_reassignments(self, moves)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The reassignments in progress, of these partitions or of all."""
        return await _replicas.list_partition_reassignments(self, partitions)

    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> Outcomes[int, tuple[LogDir, ...]]:
        """The replicas in each log directory of each broker: of these partitions, or of all."""
        return await _log_dirs.describe_log_dirs(self, brokers, partitions)

    async def describe_replica_log_dirs(
        self, replicas: Iterable[Replica]
    ) -> Outcomes[Replica, ReplicaLogDir]:
        """The current and future log directory of single replicas."""
        return await _log_dirs.describe_replica_log_dirs(self, replicas)

    async def alter_replica_log_dirs(self, moves: Mapping[Replica, str]) -> Outcomes[Replica, None]:
        """Move replicas to another log directory of their broker, while they stay in use."""
        return await _log_dirs.alter_replica_log_dirs(self, moves)

    async def create_acls(self, rules: Iterable[Rule]) -> Outcomes[AclRule, None]:
        """Create ACLs; existing ones stay as they are."""
        return await _acls.create_acls(self, rules)

    async def describe_acls(self, filter: Filter = EVERY_RULE) -> list[AclRule]:
        """The ACLs that match a filter, sorted; all of them by default."""
        return await _acls.describe_acls(self, filter)

    async def delete_acls(self, filters: Iterable[Filter]) -> Outcomes[AclFilter, list[AclRule]]:
        """Delete ACLs; by filter, the ones that were deleted."""
        return await _acls.delete_acls(self, filters)

    async def alter_user_scram_credentials(
        self, changes: Iterable[ScramUpsertion | ScramDeletion]
    ) -> Outcomes[str, None]:
        """Set and delete SCRAM credentials; the outcome for each user."""
        return await _scram_users.alter_user_scram_credentials(self, changes)

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> Outcomes[str, dict[str, int]]:
        """Mechanisms and iterations of the credentials of these users, or of all."""
        return await _scram_users.describe_user_scram_credentials(self, users)

    async def describe_client_quotas(
        self, filter: QuotaFilter | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas of the entities that a filter matches, all of them by default."""
        return await _quotas.describe_client_quotas(self, filter, strict=strict)

    async def alter_client_quotas(
        self, changes: QuotaChanges, *, validate_only: bool = False
    ) -> Outcomes[QuotaEntity, None]:
        """Set and remove quotas; the outcome for each entity."""
        return await _quotas.alter_client_quotas(self, changes, validate_only=validate_only)

    async def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = -1,
    ) -> DelegationToken:
        """A new token, of the user who asks unless `owner` names another, as `User:alice`."""
        return await _tokens.create_delegation_token(
            self, owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms
        )

    async def renew_delegation_token(self, hmac: str, period_ms: int = -1) -> int:
        """Let a token expire later; when, in ms since 1970."""
        return await _tokens.renew_delegation_token(self, hmac, period_ms)

    async def expire_delegation_token(self, hmac: str, period_ms: int = -1) -> int:
        """End a token after a period, or at once; when, in ms since 1970."""
        return await _tokens.expire_delegation_token(self, hmac, period_ms)

    async def describe_delegation_tokens(
        self, owners: Iterable[str] | None = None
    ) -> list[DelegationToken]:
        """The tokens of these owners, or all, that the user may see; the oldest first."""
        return await _tokens.describe_delegation_tokens(self, owners)

    async def describe_cluster(self) -> ClusterInfo:
        """The cluster's id, its controller and its brokers."""
        return await _brokers.describe_cluster(self)

    async def describe_features(self) -> Mapping[str, Feature]:
        """The features of the cluster by name."""
        return await _brokers.describe_features(self)

    async def describe_api_versions(
        self, broker: int | None = None
    ) -> Mapping[int, tuple[int, int]]:
        """The version range of every API that a broker supports, by API key, inclusive."""
        return await _brokers.describe_api_versions(self, broker)
