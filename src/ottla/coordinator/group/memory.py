"""Memory used by the members and the offsets of groups, over all shards, and its limits. Pure.

Owns: the bytes of each group's members, the bytes of all offsets, and whether one more is accepted.

Members are refused with GROUP_MAX_SIZE_REACHED, which clients do not retry. A quarter of the limit
is reserved for small members, so that a few large ones cannot keep ordinary ones out. Offsets of
further partitions are refused with INVALID_COMMIT_OFFSET_SIZE, which clients do not retry either;
groups can always commit new offsets of the partitions they have offsets of.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ottla.coordinator.group.classic.member import Protocol
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MEMBER_BYTES: Final = 1_024
"""Memory counted for a member without metadata: its object, its names, its timer."""
SMALL_BYTES: Final = 64 << 10
SMALL_MEMBERS_SHARE: Final = 4
"""One part in so many of the limit is reserved for members of at most `SMALL_BYTES`."""
LOG_INTERVAL_MS: Final = 10_000


def size_of(protocols: Iterable[Protocol]) -> int:
    return sum(len(name) + len(metadata) for name, metadata in protocols)


class GroupMemory:
    """Bytes by group. One for all shards of a broker."""

    def __init__(self) -> None:
        self.total = 0
        self._groups: dict[str, int] = {}
        self._logged_ms: WallMs | None = None

    def note(self, group_id: str, size: int) -> None:
        """Set the bytes that a group uses."""
        self.total += size - self._groups.get(group_id, 0)
        if size:
            self._groups[group_id] = size
        else:
            self._groups.pop(group_id, None)

    def check(self, group_id: str, size: int, limit: int, now_ms: WallMs) -> None:
        """KafkaError if `size` more bytes would exceed the limit."""
        most = limit if size <= SMALL_BYTES else limit - limit // SMALL_MEMBERS_SHARE
        if limit < 0 or size <= 0 or self.total + size <= most:
            return
        if self._logged_ms is None or now_ms - self._logged_ms >= LOG_INTERVAL_MS:
            self._logged_ms = now_ms
            log.warning(
                "group %r: refused a member with %d bytes of metadata: members of all groups use "
                "%d of at most %d bytes (derived from memory.limit.bytes)",
                group_id[:200],
                size,
                self.total,
                limit,
            )
        raise KafkaError(
            ErrorCode.group_max_size_reached,
            f"The members of all groups use {self.total} of at most {limit} bytes of memory.",
        )


class OffsetMemory:
    """Bytes of all offsets. One for all shards of a broker."""

    def __init__(self) -> None:
        self.total = 0
        self._logged_ms: WallMs | None = None

    def log_refusal(self, group_id: str, limit: int, now_ms: WallMs) -> None:
        if self._logged_ms is None or now_ms - self._logged_ms >= LOG_INTERVAL_MS:
            self._logged_ms = now_ms
            log.warning(
                "group %r: refused an offset of a further partition: the offsets of all groups use "
                "%d of at most %d bytes (derived from memory.limit.bytes)",
                group_id[:200],
                self.total,
                limit,
            )
