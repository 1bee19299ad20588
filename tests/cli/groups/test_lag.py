from __future__ import annotations

from ottla.cli.groups.lag import PartitionLag, lag_by_partition
from ottla.client.admin import CommittedOffset, Group, GroupMember
from ottla.model.ids import TopicPartition

A, B, C = (TopicPartition("t", at) for at in range(3))
BUSY = GroupMember("m1", None, "c", "/h", (A, B))
IDLE = GroupMember("m2", None, "c", "/h", ())
GROUP = Group("g", "classic", "consumer", "Stable", "range", 0, (IDLE, BUSY))


def test_committed_and_assigned_partitions_come_together_and_idle_members_last() -> None:
    rows = lag_by_partition(GROUP, {A: CommittedOffset(3), C: CommittedOffset(1, 2)}, {A: 10, B: 5})
    assert rows == [
        PartitionLag(A, 3, 10, BUSY),
        PartitionLag(B, None, 5, BUSY),
        PartitionLag(C, 1, None, None, 2),
        PartitionLag(None, None, None, IDLE),
    ]
    assert [row.lag for row in rows] == [7, None, None, None]
