"""Offsets that nobody has use for any more, and groups with nothing left.

Pure. An offset goes when its topic is not being read by the group, no open transaction writes it,
and it is old: by the time its committer gave it, or by the broker's retention, counted from when
the group became empty or, where members or simple consumers go on committing, from its commit.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.states import GroupPhase
from ottla.coordinator.group.consumer.group import ConsumerGroup, Group
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.records import NEVER, Committed


def expired(
    group: Group, offsets: Offsets, now: int, retention_ms: int
) -> Iterator[tuple[str, int]]:
    """Topic and partition of every offset of the group that may go."""
    if not _may_expire(group):
        return
    in_use = _in_use(group)
    for topic, partition, committed in offsets.each(group.id):
        if topic in in_use or offsets.is_pending(group.id, topic, partition):
            continue
        if _is_old(group, committed, now, retention_ms):
            yield topic, partition


def _may_expire(group: Group) -> bool:
    if isinstance(group, ConsumerGroup):
        return True
    if group.phase is GroupPhase.EMPTY:
        return True
    reads = group.is_consumer_group and group.subscribed is not None
    return reads and group.phase is GroupPhase.STABLE


def _in_use(group: Group) -> frozenset[str]:
    if isinstance(group, ConsumerGroup):
        return group.subscribed()
    return frozenset() if group.phase is GroupPhase.EMPTY else group.subscribed or frozenset()


def _is_old(group: Group, committed: Committed, now: int, retention_ms: int) -> bool:
    if committed.expires_ms != NEVER:
        return now >= committed.expires_ms
    since = committed.committed_ms
    if isinstance(group, ClassicGroup) and group.protocol_type and group.phase is GroupPhase.EMPTY:
        since = group.since_ms if group.since_ms >= 0 else since
    return now - since >= retention_ms
