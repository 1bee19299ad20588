"""The admin client: everything a cluster can be asked or told that is not about records.

- `aio`           the admin for asyncio: the table of calls
- `sync`          the same for everybody else, on a thread
- `session`       every item asked for where it is answered, again where that helps
- `places`        which broker answers for an item
- `outcomes`      what came of each item
- `keys`          API keys by name
- `topics`        create, delete, describe, list, more partitions
- `configs`       settings of topics, brokers, groups and loggers
- `offsets`       where partitions begin and end; deleting records
- `groups`        consumer groups and their members
- `group_offsets` what groups have committed
- `transactions`  transactions, producers, ending what hangs
- `replicas`      elections and reassignments
- `log_dirs`      what lies on which disk
- `acls`          access rules
- `brokers`       the cluster, its brokers and features

Calls that name several items return `Outcomes`, a dict with a result or an exception for each;
calls for one item raise.
"""

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
from ottla.client.admin.outcomes import Outcomes
from ottla.client.admin.replicas import ElectionKind, Reassignment
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
