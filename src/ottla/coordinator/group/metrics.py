"""What can be read about the group coordinator from outside: commits, removals, how many there are.

Owns the names. Counting is a plain addition where something is written down, because commits are
frequent; how many groups there are is worked out when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from typing import Any, Final, Protocol

from ottla.coordinator.group.records import GroupDeleted, OffsetChanged
from ottla.model.metrics import Registry

SERVER: Final = "kafka_server_groupcoordinatormetrics"
MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager"


class Counts:
    """What has been written down since this broker started; what was loaded does not count."""

    __slots__ = ("commits", "expired", "groups_removed", "removed")

    def __init__(self) -> None:
        self.commits = 0
        self.expired = 0
        self.removed = 0
        """Offsets, for whatever reason."""
        self.groups_removed = 0

    def note(self, what: Any) -> None:
        """One record of the topic."""
        if type(what) is OffsetChanged:
            if what.committed is None:
                self.removed += 1
            else:
                self.commits += 1
        elif type(what) is GroupDeleted:
            self.groups_removed += 1


class Shard(Protocol):
    @property
    def groups(self) -> Sized: ...


def publish(registry: Registry, counts: Counts, shards: Callable[[], Iterable[Shard]]) -> None:
    """Show these counts, and how many groups the shards led here have."""
    for name, doc, read in (
        ("offset_commit_count", "Offsets committed.", lambda: counts.commits),
        ("offset_expiration_count", "Offsets that expired.", lambda: counts.expired),
        (
            "offset_deletion_count",
            "Offsets deleted, or gone with their topic or group.",
            lambda: counts.removed - counts.expired,
        ),
        (
            "groups_removed",
            "Groups deleted, or gone with nothing left.",
            lambda: counts.groups_removed,
        ),
    ):
        registry.tally(f"{SERVER}_{name}_total", doc, read)
    registry.gauge(
        f"{MANAGER}_num_groups",
        "Groups coordinated here.",
        lambda: sum(len(shard.groups) for shard in shards()),
    )
