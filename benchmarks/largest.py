"""The largest sensible request of every API, for a broker with many partitions.

Owns what is asked of each API: as many items as `Size` says, most of them there, some not. Never
sends anything: `benchmarks/stalls.py` and `tests/api/test_stalls.py` do, and both fail when an API
has no entry here. An API whose request names nothing that can be many has a small entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias
from uuid import UUID

from ottla.protocol.hot.produce_request import MAX_PARTITIONS
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord

Fields: TypeAlias = dict[str, Any]

TOPIC: Final = 2
TIMEOUT_MS: Final = 120_000
NOW_MS: Final = 1_700_000_000_000
FENCE: Final = {"controller_id": 1, "controller_epoch": 1, "broker_epoch": -1}


@dataclass(frozen=True)
class Size:
    """What the broker has, and how many items a request names."""

    topics: int
    partitions: int
    items: int
    ids: Mapping[str, UUID]
    """Of the topics, by name."""

    @property
    def names(self) -> list[str]:
        return [f"many-{number}" for number in range(self.topics)]

    def topics_requested(self) -> Iterator[tuple[str, list[int]]]:
        """Topics with the partitions asked for: those there are, then such as there are not."""
        left = self.items
        for name in self.names:
            count = min(left, self.partitions)
            if count:
                yield name, list(range(count))
            left -= count
        if left:
            yield "nobody", list(range(left))

    def known(self) -> Iterator[tuple[UUID, list[int]]]:
        """The same by id."""
        for name, indexes in self.topics_requested():
            yield self.ids.get(name, UUID(int=7)), indexes

    def named(self, prefix: str) -> list[str]:
        return [f"{prefix}-{number}" for number in range(self.items)]


@dataclass(frozen=True)
class Largest:
    """One request: the fields of a version, the newest unless it says another."""

    fields: Callable[[Size], Fields]
    version: int = -1
    most: int | None = None
    """As many items as this API may be asked for, if that is fewer than of others."""
    makes_topics: bool = False
    """Or deletes them: never asked for more than `Size.items`."""
    note: str = ""


def _records() -> bytes:
    return bytes(build([NewRecord(None, b"v", timestamp=NOW_MS)]))


def _produce(size: Size) -> Fields:
    records = _records()
    data = [
        {"topic_id": id, "partition_data": [{"index": i, "records": records} for i in indexes]}
        for id, indexes in size.known()
    ]
    return {"transactional_id": None, "acks": -1, "timeout": TIMEOUT_MS, "topic_data": data}


def _fetch(size: Size) -> Fields:
    topics = [
        {
            "topic_id": id,
            "partitions": [
                {"partition": i, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for i in indexes
            ],
        }
        for id, indexes in size.known()
    ]
    return {
        "max_wait": 0, "min_bytes": 1, "topics": topics, "forgotten_topics_data": [],
        "session_id": 0, "session_epoch": 0,
    }  # fmt: skip


def _list_offsets(size: Size) -> Fields:
    topics = [
        {"name": name, "partitions": [{"partition_index": i, "timestamp": -1} for i in indexes]}
        for name, indexes in size.topics_requested()
    ]
    return {"replica_id": -1, "isolation_level": 0, "topics": topics, "timeout": TIMEOUT_MS}


def _metadata(topics: list[Fields] | None) -> Fields:
    return {
        "topics": topics,
        "allow_auto_topic_creation": True,
        "include_topic_authorized_operations": True,
    }


def _states(size: Size, state: Callable[[int], Fields], *, with_id: bool) -> list[Fields]:
    return [
        {
            "topic_name": name,
            "partition_states": [state(i) for i in indexes],
            **({"topic_id": size.ids.get(name, UUID(int=7))} if with_id else {}),
        }
        for name, indexes in size.topics_requested()
    ]


def _leader_and_isr(size: Size) -> Fields:
    def state(index: int) -> Fields:
        return {
            "partition_index": index, "controller_epoch": 1, "leader": 1, "leader_epoch": 0,
            "isr": [1], "partition_epoch": 0, "replicas": [1],
        }  # fmt: skip

    return {**FENCE, "topic_states": _states(size, state, with_id=True), "live_leaders": []}


def _update_metadata(size: Size) -> Fields:
    def state(index: int) -> Fields:
        return {
            "partition_index": index, "controller_epoch": 1, "leader": 1, "leader_epoch": 0,
            "isr": [1], "zk_version": 0, "replicas": [1],
        }  # fmt: skip

    return {**FENCE, "topic_states": _states(size, state, with_id=True), "live_brokers": []}


def _alter_partition(size: Size) -> Fields:
    proposal = {
        "leader_epoch": 0,
        "partition_epoch": 0,
        "new_isr_with_epochs": [{"broker_id": 0, "broker_epoch": -1}],
    }
    partitions = [{"partition_index": number, **proposal} for number in range(size.items)]
    topics = [{"topic_id": None, "partitions": partitions}]
    return {"broker_id": 0, "broker_epoch": -1, "topics": topics}


def _envelope(size: Size) -> Fields:
    return {
        "request_data": bytes(size.items),
        "request_principal": None,
        "client_host_address": bytes(4),
    }


def _stop_replica(size: Size) -> Fields:
    def state(index: int) -> Fields:
        return {"partition_index": index, "leader_epoch": -1, "delete_partition": False}

    return {**FENCE, "topic_states": _states(size, state, with_id=False)}


def _commits(indexes: list[int]) -> list[Fields]:
    return [
        {"partition_index": i, "committed_offset": 1, "committed_metadata": "m"} for i in indexes
    ]


def _offset_commit(size: Size) -> Fields:
    topics = [{"topic_id": id, "partitions": _commits(indexes)} for id, indexes in size.known()]
    return {"group_id": "large", "member_id": "", "topics": topics}


def _txn_offset_commit(size: Size) -> Fields:
    topics = [
        {"name": name, "partitions": _commits(indexes)} for name, indexes in size.topics_requested()
    ]
    return {
        "transactional_id": "large", "group_id": "large", "producer_id": 1, "producer_epoch": 0,
        "topics": topics,
    }  # fmt: skip


def _offset_fetch(size: Size) -> Fields:
    topics = [{"topic_id": id, "partition_indexes": indexes} for id, indexes in size.known()]
    return {"groups": [{"group_id": "large", "topics": topics}], "require_stable": True}


def _many_groups(size: Size) -> Fields:
    return {"groups": [{"group_id": name, "topics": None} for name in size.named("g")]}


def _ids(size: Size, key: str = "partitions", name: str = "name") -> list[Fields]:
    return [{name: topic, key: indexes} for topic, indexes in size.topics_requested()]


def _quota(name: str) -> dict[str, Any]:
    op = {"key": "producer_byte_rate", "value": 1e9, "remove": False}
    return {"entity": [{"entity_type": "client-id", "entity_name": name}], "ops": [op]}


def _acl(name: str) -> Fields:
    return {
        "resource_type": TOPIC, "resource_name": name, "resource_pattern_type": 3,
        "principal": "User:u", "host": "*", "operation": 3, "permission_type": 3,
    }  # fmt: skip


def _acl_filter(name: str | None) -> Fields:
    return {
        "resource_type_filter": TOPIC, "resource_name_filter": name, "pattern_type_filter": 3,
        "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip


def _new_topics(size: Size, *, validate_only: bool) -> Fields:
    new = [
        {
            "name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [],
            "configs": [{"name": "retention.ms", "value": "1000"}],
        }
        for name in size.named("new")
    ]  # fmt: skip
    return {"topics": new, "timeout": TIMEOUT_MS, "validate_only": validate_only}


def _wide_topic(size: Size) -> Fields:
    new = {
        "name": "wide", "num_partitions": size.items, "replication_factor": 1, "assignments": [],
        "configs": [],
    }  # fmt: skip
    return {"topics": [new], "timeout": TIMEOUT_MS, "validate_only": False}


def _deleted(size: Size) -> Fields:
    names = [*size.named("new"), *size.named("asked"), "wide"]
    topics = [{"name": name, "topic_id": UUID(int=0)} for name in names]
    return {"topics": topics, "timeout": TIMEOUT_MS}


def _topic_configs(size: Size, config: Fields) -> list[Fields]:
    names = [*size.names, *size.named("absent")][: size.items]
    return [{"resource_type": TOPIC, "resource_name": name, "configs": [config]} for name in names]


def _described_configs(size: Size) -> Fields:
    names = [*size.names, *size.named("absent")][: size.items]
    resources = [{"resource_type": TOPIC, "resource_name": name} for name in names]
    return {"resources": resources, "include_synonyms": True, "include_documentation": True}


def _markers(size: Size) -> Fields:
    marker = {
        "producer_id": 99, "producer_epoch": 0, "transaction_result": False,
        "topics": _ids(size, "partition_indexes"), "coordinator_epoch": 0,
    }  # fmt: skip
    return {"markers": [marker]}


def _added(size: Size) -> Fields:
    return {
        "v3_and_below_transactional_id": "large", "v3_and_below_producer_id": 1,
        "v3_and_below_producer_epoch": 0, "v3_and_below_topics": _ids(size),
    }  # fmt: skip


def _moves(size: Size) -> Fields:
    topics = [
        {"name": name, "partitions": [{"partition_index": i, "replicas": [1]} for i in indexes]}
        for name, indexes in size.topics_requested()
    ]
    return {"timeout": TIMEOUT_MS, "topics": topics}


def _joined(size: Size) -> Fields:
    protocols = [{"name": name, "metadata": b"m"} for name in size.named("p")]
    return {
        "group_id": "joined", "session_timeout": 30_000, "rebalance_timeout": 30_000,
        "member_id": "", "protocol_type": "consumer", "protocols": protocols,
    }  # fmt: skip


def _synced(size: Size) -> Fields:
    given = [{"member_id": name, "assignment": b"a"} for name in size.named("m")]
    return {"group_id": "joined", "generation_id": 1, "member_id": "m", "assignments": given}


def _heartbeat(size: Size) -> Fields:
    return {
        "group_id": "modern", "member_id": "8f1dfa64-2c01-4c40-ad9a-4d34ab0a35a5",
        "member_epoch": 0, "rebalance_timeout": 30_000,
        "subscribed_topic_names": [*size.names, *size.named("absent")][: size.items],
        "topic_partitions": [],
    }  # fmt: skip


def _owned(size: Size) -> Fields:
    topics = [{"topic_id": id, "partitions": indexes} for id, indexes in size.known()]
    return {**_heartbeat(replace(size, items=1)), "member_epoch": 1, "topic_partitions": topics}


def _by_topic(size: Size) -> list[Fields]:
    return [
        {"name": name, "partitions": [{"partition_index": i} for i in indexes]}
        for name, indexes in size.topics_requested()
    ]


def _epochs(size: Size) -> Fields:
    topics = [
        {"topic": name, "partitions": [{"partition": i, "leader_epoch": 0} for i in indexes]}
        for name, indexes in size.topics_requested()
    ]
    return {"replica_id": -1, "topics": topics}


def _records_deleted(size: Size) -> Fields:
    topics = [
        {"name": name, "partitions": [{"partition_index": i, "offset": -1} for i in indexes]}
        for name, indexes in size.topics_requested()
    ]
    return {"topics": topics, "timeout": TIMEOUT_MS}


_SETTING: Final = {"name": "retention.ms", "value": "2000"}
_CHANGE: Final = {**_SETTING, "config_operation": 0}

LARGEST: Final[Mapping[str, tuple[Largest, ...]]] = {
    "Produce": (Largest(_produce, most=MAX_PARTITIONS - 1_000),),
    "Fetch": (Largest(_fetch),),
    "ListOffsets": (Largest(_list_offsets),),
    "Metadata": (
        Largest(lambda size: _metadata(None), note="all topics"),
        Largest(
            lambda size: _metadata([{"topic_id": None, "name": n} for n in size.named("asked")]),
            note="topics that are not there",
        ),
    ),
    "LeaderAndIsr": (Largest(_leader_and_isr),),
    "StopReplica": (Largest(_stop_replica),),
    "UpdateMetadata": (Largest(_update_metadata),),
    "ControlledShutdown": (Largest(lambda size: {"broker_id": 9, "broker_epoch": 1}),),
    "AlterPartition": (Largest(_alter_partition),),
    "Envelope": (Largest(_envelope),),
    "OffsetCommit": (Largest(_offset_commit),),
    "OffsetFetch": (
        Largest(_offset_fetch),
        Largest(_many_groups, 9, note="many groups"),
    ),
    "FindCoordinator": (Largest(lambda size: {"coordinator_keys": size.named("g")}),),
    "JoinGroup": (Largest(_joined),),
    "Heartbeat": (Largest(lambda size: {"group_id": "g", "generation_id": 1, "member_id": "m"}),),
    "LeaveGroup": (
        Largest(
            lambda size: {
                "group_id": "joined",
                "members": [{"member_id": name} for name in size.named("m")],
            }
        ),
    ),
    "SyncGroup": (Largest(_synced),),
    "DescribeGroups": (
        Largest(lambda size: {"groups": size.named("g"), "include_authorized_operations": True}),
    ),
    "ListGroups": (Largest(lambda size: {"states_filter": size.named("s")}),),
    "ApiVersions": (
        Largest(lambda size: {"client_software_name": "n", "client_software_version": "1"}),
    ),
    "CreateTopics": (
        Largest(lambda size: _new_topics(size, validate_only=True), note="validate only"),
        Largest(lambda size: _new_topics(size, validate_only=False), makes_topics=True),
        Largest(_wide_topic, makes_topics=True, note="one topic"),
    ),
    "DeleteTopics": (
        Largest(_deleted, makes_topics=True),
        Largest(
            lambda size: {"topic_names": size.named("absent"), "timeout": TIMEOUT_MS},
            5,
            note="topics that are not there",
        ),
    ),
    "DeleteRecords": (Largest(_records_deleted),),
    "InitProducerId": (
        Largest(lambda size: {"transactional_id": "large", "transaction_timeout": 60_000}),
    ),
    "OffsetForLeaderEpoch": (Largest(_epochs),),
    "AddPartitionsToTxn": (Largest(_added, 3),),
    "AddOffsetsToTxn": (
        Largest(
            lambda size: {
                "transactional_id": "large",
                "producer_id": 1,
                "producer_epoch": 0,
                "group_id": "g",
            }
        ),
    ),
    "EndTxn": (
        Largest(
            lambda size: {
                "transactional_id": "large",
                "producer_id": 1,
                "producer_epoch": 0,
                "committed": True,
            }
        ),
    ),
    "WriteTxnMarkers": (Largest(_markers),),
    "TxnOffsetCommit": (Largest(_txn_offset_commit),),
    "DescribeAcls": (Largest(lambda size: _acl_filter(None)),),
    "CreateAcls": (Largest(lambda size: {"creations": [_acl(n) for n in size.named("acl")]}),),
    "DeleteAcls": (Largest(lambda size: {"filters": [_acl_filter(n) for n in size.named("acl")]}),),
    "DescribeConfigs": (Largest(_described_configs),),
    "AlterConfigs": (
        Largest(lambda size: {"resources": _topic_configs(size, _SETTING), "validate_only": False}),
    ),
    "AlterReplicaLogDirs": (
        Largest(lambda size: {"dirs": [{"path": "/nowhere", "topics": _ids(size)}]}),
    ),
    "DescribeLogDirs": (
        Largest(lambda size: {"topics": None}),
        Largest(lambda size: {"topics": _ids(size, name="topic")}, note="by name"),
    ),
    "CreatePartitions": (
        Largest(
            lambda size: {
                "topics": [
                    {"name": name, "count": size.partitions + 1, "assignments": None}
                    for name in [*size.names, *size.named("absent")][: size.items]
                ],
                "timeout": TIMEOUT_MS,
                "validate_only": False,
            }
        ),
    ),
    "DeleteGroups": (Largest(lambda size: {"groups_names": size.named("g")}),),
    "ElectLeaders": (
        Largest(
            lambda size: {
                "election_type": 0,
                "topic_partitions": _ids(size, name="topic"),
                "timeout": TIMEOUT_MS,
            }
        ),
        Largest(
            lambda size: {"election_type": 0, "topic_partitions": None, "timeout": TIMEOUT_MS},
            note="all partitions",
        ),
    ),
    "IncrementalAlterConfigs": (
        Largest(lambda size: {"resources": _topic_configs(size, _CHANGE), "validate_only": False}),
    ),
    "AlterPartitionReassignments": (Largest(_moves),),
    "ListPartitionReassignments": (
        Largest(lambda size: {"topics": _ids(size, "partition_indexes"), "timeout": TIMEOUT_MS}),
    ),
    "OffsetDelete": (Largest(lambda size: {"group_id": "large", "topics": _by_topic(size)}),),
    "CreateDelegationToken": (
        Largest(
            lambda size: {
                "owner_principal_type": None,
                "owner_principal_name": None,
                "renewers": [
                    {"principal_type": "User", "principal_name": n} for n in size.named("renewer")
                ],
                "max_lifetime": -1,
            }
        ),
    ),
    "RenewDelegationToken": (Largest(lambda size: {"hmac": b"", "renew_period": -1}),),
    "ExpireDelegationToken": (Largest(lambda size: {"hmac": b"", "expiry_time_period": -1}),),
    "DescribeDelegationToken": (Largest(lambda size: {"owners": None}),),
    "SaslHandshake": (Largest(lambda size: {"mechanism": "PLAIN"}),),
    "SaslAuthenticate": (Largest(lambda size: {"auth_bytes": b"token"}),),
    "DescribeClientQuotas": (Largest(lambda size: {"components": [], "strict": False}),),
    "AlterClientQuotas": (
        Largest(lambda size: {"entries": [*map(_quota, size.named("c"))], "validate_only": False}),
    ),
    "DescribeUserScramCredentials": (
        Largest(lambda size: {"users": [{"name": name} for name in size.named("u")]}),
    ),
    "AlterUserScramCredentials": (
        Largest(
            lambda size: {
                "deletions": [{"name": name, "mechanism": 1} for name in size.named("u")],
                "upsertions": [],
            }
        ),
    ),
    "DescribeCluster": (
        Largest(
            lambda size: {
                "include_cluster_authorized_operations": True,
                "include_fenced_brokers": True,
            }
        ),
    ),
    "DescribeProducers": (Largest(lambda size: {"topics": _ids(size, "partition_indexes")}),),
    "DescribeTransactions": (Largest(lambda size: {"transactional_ids": size.named("t")}),),
    "ListTransactions": (Largest(lambda size: {"state_filters": size.named("s")}),),
    "ConsumerGroupHeartbeat": (Largest(_heartbeat), Largest(_owned, note="partitions owned")),
    "ConsumerGroupDescribe": (
        Largest(lambda size: {"group_ids": size.named("g"), "include_authorized_operations": True}),
    ),
    "ListConfigResources": (Largest(lambda size: {"resource_types": []}),),
    "DescribeTopicPartitions": (
        Largest(
            lambda size: {
                "topics": [{"name": n} for n in [*size.names, *size.named("absent")][: size.items]],
                "response_partition_limit": 2_000_000_000,
                "cursor": None,
            }
        ),
    ),
}
"""By the name of the API."""
