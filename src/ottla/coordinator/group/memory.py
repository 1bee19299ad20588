"""What the members of classic groups take of the memory, in all shards together. Pure.

Owns: the bytes of each group, and whether one more member may come. Never: counts offsets, whose
number is that of partitions and groups, or groups of the consumer protocol, whose members are
stored before they count and so cannot be larger than a record.

Members are refused with GROUP_MAX_SIZE_REACHED, which clients take as final and show. A quarter is
left to small members, so that a few that bring megabytes do not keep ordinary ones out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ottla.coordinator.group.classic.member import Protocol
from ottla.model.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MEMBER_BYTES: Final = 1_024
"""A member with nothing to say: its object, its names, its timer."""
SMALL_BYTES: Final = 64 << 10
KEPT_FOR_SMALL: Final = 4
SAID_EVERY_MS: Final = 10_000


def size_of(protocols: Iterable[Protocol]) -> int:
    return sum(len(name) + len(metadata) for name, metadata in protocols)


class GroupMemory:
    """Bytes by group. One for all shards of a broker."""

    def __init__(self) -> None:
        self.total = 0
        self._groups: dict[str, int] = {}
        self._said_ms: int | None = None

    def note(self, group_id: str, size: int) -> None:
        """A group takes so many bytes now."""
        self.total += size - self._groups.get(group_id, 0)
        if size:
            self._groups[group_id] = size
        else:
            self._groups.pop(group_id, None)

    def check(self, group_id: str, size: int, limit: int, now_ms: int) -> None:
        """Refuse a member that brings `size` bytes more than what is there."""
        most = limit if size <= SMALL_BYTES else limit - limit // KEPT_FOR_SMALL
        if limit < 0 or size <= 0 or self.total + size <= most:
            return
        if self._said_ms is None or now_ms - self._said_ms >= SAID_EVERY_MS:
            self._said_ms = now_ms
            log.warning(
                "group %r: a member with %d bytes of metadata was refused: members of all groups "
                "have %d, of at most %d (derived from memory.limit.bytes)",
                group_id[:200],
                size,
                self.total,
                limit,
            )
        raise KafkaError(ErrorCode.group_max_size_reached)
