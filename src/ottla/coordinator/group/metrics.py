"""Metrics of the group coordinator: commits, removals, number of groups.

Owns the names. Counting is a plain addition where a record is replayed, because commits are
frequent; the number of groups is computed when the metric is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from typing import Final, Protocol

from ottla.coordinator.group.records import GroupDeleted, GroupTopicChange, OffsetChanged
from ottla.model.metrics import Registry

SERVER: Final = "kafka_server_groupcoordinatormetrics"
MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager"


class Counts:
    """Records written since this broker started; loaded records do not count."""

    __slots__ = ("commits", "expired", "groups_removed", "removed")

    def __init__(self) -> None:
        self.commits = 0
        self.expired = 0
        self.removed = 0
        """Removed offsets, for any reason."""
        self.groups_removed = 0

    def note(self, change: GroupTopicChange) -> None:
        """Count one record of the topic."""
        if type(change) is OffsetChanged:
            if change.committed is None:
                self.removed += 1
            else:
                self.commits += 1
        elif type(change) is GroupDeleted:
            self.groups_removed += 1


class Shard(Protocol):
    @property
    def groups(self) -> Sized: ...


def publish(registry: Registry, counts: Counts, shards: Callable[[], Iterable[Shard]]) -> None:
    """Register these counts, and the number of groups in the given shards."""
    for name, doc, read in (
        ("offset_commit_count", "Offsets committed.", lambda: counts.commits),
        ("offset_expiration_count", "Offsets that expired.", lambda: counts.expired),
        (
            "offset_deletion_count",
            "Offsets deleted by a request, or with their topic or group.",
            lambda: counts.removed - counts.expired,
        ),
        (
            "groups_removed",
            "Groups deleted by a request, or because they had no members and no offsets.",
            lambda: counts.groups_removed,
        ),
    ):
        registry.tally(f"{SERVER}_{name}_total", doc, read)
    registry.gauge(
        f"{MANAGER}_num_groups",
        "Groups coordinated by this broker.",
        lambda: sum(len(shard.groups) for shard in shards()),
    )
