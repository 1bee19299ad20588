"""The settings of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


class GroupTiming(Protocol):
    """Heartbeat interval and session timeout of a consumer group."""

    @property
    def consumer_heartbeat_interval_ms(self) -> int: ...

    @property
    def consumer_session_timeout_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The broker settings that decisions need, under Kafka's own names."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    consumer_protocol: bool = True
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    paces: Mapping[str, GroupTiming] = field(default_factory=dict)
    """By group, for the groups with settings of their own."""
    consumer_max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    upgrades: bool = True
    downgrades: bool = True
    regex_refresh_interval_ms: int = 600_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
    memory_bytes: int = -1
    """For the members of all groups; below 0: no limit."""
    offsets_memory_bytes: int = -1
    """For the offsets of all groups; below 0: no limit."""

    def pace(self, group_id: str) -> GroupTiming:
        return self.paces.get(group_id, self)
