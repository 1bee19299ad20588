"""The synchronous admin: `with ottla.Admin(bootstrap_servers=...) as admin`.

Each method runs the method of `ottla.aio.Admin` with the same name on the client's own event loop
thread, and waits for its result.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from ottla.client.admin import aio
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
from ottla.client.admin.session import Outcomes
from ottla.client.admin.tokens import DelegationToken
from ottla.client.admin.topics import CreatedTopic, MorePartitions, NewTopic, Topic
from ottla.client.admin.transactions import (
    ActiveProducer,
    FencedProducer,
    Transaction,
    TransactionListing,
)
from ottla.client.loop_thread import LoopThread
from ottla.model.ids import TopicPartition
from ottla.security.acl import Filter, Rule
from ottla.security.quotas.entities import QuotaEntity

R = TypeVar("R")


class Admin:
    """Looks at a cluster and changes it.

    Options are Kafka's admin settings with underscores (`bootstrap_servers`,
    `request_timeout_ms`, `default_api_timeout_ms`), or under Kafka's own names in `config`.
    """

    def __init__(self, *, config: Mapping[str, object] | None = None, **options: object) -> None:
        self._admin = aio.Admin(config=config, **options)
        self._thread = LoopThread("ottla-admin")
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        if self._started:
            self._started = False
            self._thread.call_soon(self._admin.close)
            self._thread.stop()

    def wait_for(self, work: Callable[[aio.Admin], Coroutine[object, None, R]]) -> R:
        """Run several calls on the client's own thread, and wait for the result."""
        if not self._started:
            self._thread.start()
            self._started = True
        return self._thread.run(work(self._admin))

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> Outcomes[str, CreatedTopic]:
        """Create topics; with `validate_only` only check whether it would work."""
        return self.wait_for(lambda admin: admin.create_topics(topics, validate_only=validate_only))

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> CreatedTopic:
        """Create one topic, or raise."""
        return self.wait_for(
            lambda admin: admin.create_topic(
                name, partitions=partitions, replication_factor=replication_factor, configs=configs
            )
        )

    def delete_topics(self, names: Iterable[str]) -> Outcomes[str, None]:
        """Delete topics with all their records."""
        return self.wait_for(lambda admin: admin.delete_topics(names))

    def delete_topic(self, name: str) -> None:
        """Delete one topic, or raise."""
        self.wait_for(lambda admin: admin.delete_topic(name))

    def create_partitions(
        self, topics: Mapping[str, MorePartitions | int], *, validate_only: bool = False
    ) -> Outcomes[str, None]:
        """Add partitions to topics; the number can never be reduced."""
        return self.wait_for(
            lambda admin: admin.create_partitions(topics, validate_only=validate_only)
        )

    def list_topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted; internal topics only if `internal`."""
        return self.wait_for(lambda admin: admin.list_topics(internal=internal))

    def describe_topics(self, names: Iterable[str]) -> Outcomes[str, Topic]:
        """Topics with their partitions: leaders, replicas, in-sync replicas."""
        return self.wait_for(lambda admin: admin.describe_topics(names))

    def describe_topic(self, name: str) -> Topic:
        """One topic, or raise."""
        return self.wait_for(lambda admin: admin.describe_topic(name))

    def describe_configs(
        self,
        resources: Iterable[Resource],
        *,
        names: Iterable[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> Outcomes[Resource, dict[str, ConfigEntry]]:
        """The settings of each resource by name; all of them, or those named."""
        return self.wait_for(
            lambda admin: admin.describe_configs(
                resources, names=names, synonyms=synonyms, documentation=documentation
            )
        )

    def alter_configs(
        self, configs: Mapping[Resource, Mapping[str, str]], *, validate_only: bool = False
    ) -> Outcomes[Resource, None]:
        """Replace all settings of each resource; those not named are reset to their defaults."""
        return self.wait_for(
            lambda admin: admin.alter_configs(configs, validate_only=validate_only)
        )

    def incremental_alter_configs(
        self,
        changes: Mapping[Resource, Mapping[str, ConfigChange | str | None]],
        *,
        validate_only: bool = False,
    ) -> Outcomes[Resource, None]:
        """Change single settings; a text sets one, None resets it to its default."""
        return self.wait_for(
            lambda admin: admin.incremental_alter_configs(changes, validate_only=validate_only)
        )

    def list_config_resources(self, kinds: Iterable[ResourceKind] = ()) -> list[Resource]:
        """The resources that have settings: of these kinds, or of every kind."""
        return self.wait_for(lambda admin: admin.list_config_resources(kinds))

    def list_offsets(
        self, wanted: Mapping[TopicPartition, OffsetSpec | int], *, read_committed: bool = False
    ) -> Outcomes[TopicPartition, ListedOffset]:
        """The start or end offset of each partition, or the first offset at or after a timestamp.

        With `read_committed` the end offset is the last stable offset.
        """
        return self.wait_for(
            lambda admin: admin.list_offsets(wanted, read_committed=read_committed)
        )

    def delete_records(self, before: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
        """Delete the records below an offset of each partition; its new start offset.

        The offset -1 stands for the high watermark.
        """
        return self.wait_for(lambda admin: admin.delete_records(before))

    def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[GroupListing]:
        """All groups of all brokers, sorted by id."""
        return self.wait_for(lambda admin: admin.list_groups(states=states, types=types))

    def describe_groups(self, ids: Iterable[str]) -> Outcomes[str, Group]:
        """Groups with their members and assignments."""
        return self.wait_for(lambda admin: admin.describe_groups(ids))

    def describe_group(self, id: str) -> Group:
        """One group, or raise."""
        return self.wait_for(lambda admin: admin.describe_group(id))

    def delete_groups(self, ids: Iterable[str]) -> Outcomes[str, None]:
        """Delete groups and their offsets; a group must have no members."""
        return self.wait_for(lambda admin: admin.delete_groups(ids))

    def remove_group_members(
        self, group: str, members: Iterable[GroupMember], *, reason: str | None = None
    ) -> Outcomes[str, None]:
        """Remove members from a group, as `describe_groups` returns them."""
        return self.wait_for(
            lambda admin: admin.remove_group_members(group, members, reason=reason)
        )

    def list_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> Outcomes[TopicPartition, CommittedOffset]:
        """A group's committed offsets, for these partitions or for all that have one.

        With `require_stable` it waits for open transactions that would change them.
        """
        return self.wait_for(
            lambda admin: admin.list_group_offsets(group, partitions, require_stable=require_stable)
        )

    def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
    ) -> Outcomes[TopicPartition, None]:
        """Set the committed offsets of a group that has no members."""
        return self.wait_for(lambda admin: admin.alter_group_offsets(group, offsets))

    def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, None]:
        """Delete committed offsets of partitions that no member of the group subscribes to."""
        return self.wait_for(lambda admin: admin.delete_group_offsets(group, partitions))

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """List transactional ids of all coordinators; `pattern` is a whole RE2 expression."""
        return self.wait_for(
            lambda admin: admin.list_transactions(
                states=states,
                producer_ids=producer_ids,
                longer_than_ms=longer_than_ms,
                pattern=pattern,
            )
        )

    def describe_transactions(self, ids: Iterable[str]) -> Outcomes[str, Transaction]:
        """The state of transactions and their partitions."""
        return self.wait_for(lambda admin: admin.describe_transactions(ids))

    def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, tuple[ActiveProducer, ...]]:
        """The active producers of each partition, as its leader knows them."""
        return self.wait_for(lambda admin: admin.describe_producers(partitions))

    def abort_transaction(self, partition: TopicPartition, producer: ActiveProducer) -> None:
        """Abort a hanging transaction in one partition: one that its coordinator no longer knows.

        Use `fence_producers` for a transaction that its coordinator knows.
        """
        self.wait_for(lambda admin: admin.abort_transaction(partition, producer))

    def fence_producers(self, ids: Iterable[str]) -> Outcomes[str, FencedProducer]:
        """Fence the producers of transactional ids; their open transactions are aborted."""
        return self.wait_for(lambda admin: admin.fence_producers(ids))

    def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        kind: ElectionKind = ElectionKind.PREFERRED,
    ) -> Outcomes[TopicPartition, None]:
        """Elect the preferred leader, or any leader; None means every partition."""
        return self.wait_for(lambda admin: admin.elect_leaders(partitions, kind=kind))

    def alter_partition_reassignments(
        self, moves: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Outcomes[TopicPartition, None]:
        """Move partitions to these brokers, the preferred leader first; None cancels a move."""
        return self.wait_for(lambda admin: admin.alter_partition_reassignments(moves))

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The reassignments in progress, of these partitions or of all."""
        return self.wait_for(lambda admin: admin.list_partition_reassignments(partitions))

    def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> Outcomes[int, tuple[LogDir, ...]]:
        """The replicas in each log directory of each broker: of these partitions, or of all."""
        return self.wait_for(lambda admin: admin.describe_log_dirs(brokers, partitions))

    def describe_replica_log_dirs(
        self, replicas: Iterable[Replica]
    ) -> Outcomes[Replica, ReplicaLogDir]:
        """The current and future log directory of single replicas."""
        return self.wait_for(lambda admin: admin.describe_replica_log_dirs(replicas))

    def alter_replica_log_dirs(self, moves: Mapping[Replica, str]) -> Outcomes[Replica, None]:
        """Move replicas to another log directory of their broker, while they stay in use."""
        return self.wait_for(lambda admin: admin.alter_replica_log_dirs(moves))

    def create_acls(self, rules: Iterable[Rule]) -> Outcomes[AclRule, None]:
        """Create ACLs; existing ones stay as they are."""
        return self.wait_for(lambda admin: admin.create_acls(rules))

    def describe_acls(self, filter: Filter = EVERY_RULE) -> list[AclRule]:
        """The ACLs that match a filter, sorted; all of them by default."""
        return self.wait_for(lambda admin: admin.describe_acls(filter))

    def delete_acls(self, filters: Iterable[Filter]) -> Outcomes[AclFilter, list[AclRule]]:
        """Delete ACLs; by filter, the ones that were deleted."""
        return self.wait_for(lambda admin: admin.delete_acls(filters))

    def alter_user_scram_credentials(
        self, changes: Iterable[ScramUpsertion | ScramDeletion]
    ) -> Outcomes[str, None]:
        """Set and delete SCRAM credentials; the outcome for each user."""
        return self.wait_for(lambda admin: admin.alter_user_scram_credentials(changes))

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> Outcomes[str, dict[str, int]]:
        """Mechanisms and iterations of the credentials of these users, or of all."""
        return self.wait_for(lambda admin: admin.describe_user_scram_credentials(users))

    def describe_client_quotas(
        self, filter: QuotaFilter | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas of the entities that a filter matches, all of them by default."""
        return self.wait_for(lambda admin: admin.describe_client_quotas(filter, strict=strict))

    def alter_client_quotas(
        self, changes: QuotaChanges, *, validate_only: bool = False
    ) -> Outcomes[QuotaEntity, None]:
        """Set and remove quotas; the outcome for each entity."""
        return self.wait_for(
            lambda admin: admin.alter_client_quotas(changes, validate_only=validate_only)
        )

    def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = -1,
    ) -> DelegationToken:
        """A new token, of the user who asks unless `owner` names another, as `User:alice`."""
        return self.wait_for(
            lambda admin: admin.create_delegation_token(
                owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms
            )
        )

    def renew_delegation_token(self, hmac: str, period_ms: int = -1) -> int:
        """Let a token expire later; when, in ms since 1970."""
        return self.wait_for(lambda admin: admin.renew_delegation_token(hmac, period_ms))

    def expire_delegation_token(self, hmac: str, period_ms: int = -1) -> int:
        """End a token after a period, or at once; when, in ms since 1970."""
        return self.wait_for(lambda admin: admin.expire_delegation_token(hmac, period_ms))

    def describe_delegation_tokens(
        self, owners: Iterable[str] | None = None
    ) -> list[DelegationToken]:
        """The tokens of these owners, or all, that the user may see; the oldest first."""
        return self.wait_for(lambda admin: admin.describe_delegation_tokens(owners))

    def describe_cluster(self) -> ClusterInfo:
        """The cluster's id, its controller and its brokers."""
        return self.wait_for(lambda admin: admin.describe_cluster())

    def describe_features(self) -> Mapping[str, Feature]:
        """The features of the cluster by name."""
        return self.wait_for(lambda admin: admin.describe_features())

    def describe_api_versions(self, broker: int | None = None) -> Mapping[int, tuple[int, int]]:
        """The version range of every API that a broker supports, by API key, inclusive."""
        return self.wait_for(lambda admin: admin.describe_api_versions(broker))
