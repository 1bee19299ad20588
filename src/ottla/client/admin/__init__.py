"""The admin client: topics, settings, groups, transactions, replicas, ACLs.

- `aio`           the admin for asyncio
- `sync`          the synchronous admin, on a thread
- `session`       sends each item to the broker responsible for it, with retries
- `routing`       which broker is responsible for an item
- `api_keys`      API keys by name
- `topics`        create, delete, describe, list, more partitions
- `configs`       settings of topics, brokers, groups and loggers
- `offsets`       start and end offsets of partitions; deleting records
- `groups`        consumer groups and their members
- `group_offsets` offsets committed by groups
- `transactions`  transactions, producers, aborting hanging transactions
- `replicas`      elections and reassignments
- `log_dirs`      log directories and the replicas in them
- `acls`          ACLs
- `scram_users`   SCRAM credentials of users
- `tokens`        delegation tokens
- `quotas`        quotas of users, client ids and IP addresses
- `brokers`       the cluster, its brokers and features

Calls that name several items return `Outcomes`, a dict with a result or an exception for each;
calls for one item raise.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.admin.acls import AclFilter, AclRule
    from ottla.client.admin.brokers import BrokerInfo, ClusterInfo, Feature
    from ottla.client.admin.configs import (
        ConfigChange,
        ConfigEntry,
        ConfigOp,
        ConfigSource,
        Resource,
        ResourceKind,
        Synonym,
    )
    from ottla.client.admin.group_offsets import CommittedOffset
    from ottla.client.admin.groups import Group, GroupListing, GroupMember
    from ottla.client.admin.log_dirs import LogDir, Replica, ReplicaLogDir, ReplicaOnDisk
    from ottla.client.admin.offsets import ListedOffset, OffsetSpec
    from ottla.client.admin.replicas import ElectionKind, Reassignment
    from ottla.client.admin.session import Outcomes
    from ottla.client.admin.tokens import DelegationToken
    from ottla.client.admin.topics import CreatedTopic, MorePartitions, NewTopic, Partition, Topic
    from ottla.client.admin.transactions import (
        ActiveProducer,
        FencedProducer,
        Transaction,
        TransactionListing,
    )
    from ottla.security.acl import Kind as AclKind
    from ottla.security.acl import Operation as AclOperation
    from ottla.security.acl import Pattern as AclPattern
    from ottla.security.acl import Permission as AclPermission

__all__ = [
    "AclFilter",
    "AclKind",
    "AclOperation",
    "AclPattern",
    "AclPermission",
    "AclRule",
    "ActiveProducer",
    "BrokerInfo",
    "ClusterInfo",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOp",
    "ConfigSource",
    "CreatedTopic",
    "DelegationToken",
    "ElectionKind",
    "Feature",
    "FencedProducer",
    "Group",
    "GroupListing",
    "GroupMember",
    "ListedOffset",
    "LogDir",
    "MorePartitions",
    "NewTopic",
    "OffsetSpec",
    "Outcomes",
    "Partition",
    "Reassignment",
    "Replica",
    "ReplicaLogDir",
    "ReplicaOnDisk",
    "Resource",
    "ResourceKind",
    "Synonym",
    "Topic",
    "Transaction",
    "TransactionListing",
]

_HOMES = {
    "AclFilter": "acls",
    "AclRule": "acls",
    "ActiveProducer": "transactions",
    "BrokerInfo": "brokers",
    "ClusterInfo": "brokers",
    "CommittedOffset": "group_offsets",
    "ConfigChange": "configs",
    "ConfigEntry": "configs",
    "ConfigOp": "configs",
    "ConfigSource": "configs",
    "CreatedTopic": "topics",
    "DelegationToken": "tokens",
    "ElectionKind": "replicas",
    "Feature": "brokers",
    "FencedProducer": "transactions",
    "Group": "groups",
    "GroupListing": "groups",
    "GroupMember": "groups",
    "ListedOffset": "offsets",
    "LogDir": "log_dirs",
    "MorePartitions": "topics",
    "NewTopic": "topics",
    "OffsetSpec": "offsets",
    "Outcomes": "session",
    "Partition": "topics",
    "Reassignment": "replicas",
    "Replica": "log_dirs",
    "ReplicaLogDir": "log_dirs",
    "ReplicaOnDisk": "log_dirs",
    "Resource": "configs",
    "ResourceKind": "configs",
    "Synonym": "configs",
    "Topic": "topics",
    "Transaction": "transactions",
    "TransactionListing": "transactions",
}
_ACL_NAMES = {
    "AclKind": "Kind",
    "AclOperation": "Operation",
    "AclPattern": "Pattern",
    "AclPermission": "Permission",
}


def __getattr__(name: str) -> object:
    """The public names, imported when first used: a worker of Spark needs few of them."""
    if name in _ACL_NAMES:
        return getattr(import_module("ottla.security.acl"), _ACL_NAMES[name])
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
