"""How far groups are behind: what they committed beside where the partitions end.

Owns: bringing the three answers together, members, offsets and ends. Never: prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.admin import CommittedOffset, Group, GroupMember, OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.model.ids import TopicPartition


class PartitionLag(NamedTuple):
    """One partition as a group sees it; None where there is nothing to say."""

    partition: TopicPartition | None
    committed: int | None
    end: int | None
    member: GroupMember | None
    leader_epoch: int | None = None
    """Of the record that was committed, where the client said so."""

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end is None:
            return None
        return self.end - self.committed


def lags(admin: Admin, group: Group) -> list[PartitionLag]:
    """Every partition the group has committed or is assigned, in order."""
    committed = admin.list_group_offsets(group.id).succeeded
    owners = {one: member for member in group.members for one in member.assignment}
    partitions = sorted({*committed, *owners})
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)).succeeded
    return lag_by_partition(group, committed, {one: found.offset for one, found in ends.items()})


def lag_by_partition(
    group: Group,
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, int | None],
) -> list[PartitionLag]:
    """By partition; after them the members that have none."""
    owners = {partition: member for member in group.members for partition in member.assignment}
    rows = [
        PartitionLag(
            partition,
            committed[partition].offset if partition in committed else None,
            ends.get(partition),
            owners.get(partition),
            committed[partition].leader_epoch if partition in committed else None,
        )
        for partition in sorted({*committed, *owners})
    ]
    idle = [member for member in group.members if not member.assignment]
    return rows + [PartitionLag(None, None, None, member) for member in idle]
