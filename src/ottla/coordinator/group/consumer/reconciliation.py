"""A member's next assignment on the way to its target.

Pure. A member first revokes partitions that are not in its target and confirms that, before it
reaches the target epoch; it gets free partitions at once, and waits for the rest. So a partition is
never owned by two members, however slow one of them is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ottla.coordinator.group.consumer.member import MemberAssignment, MemberState
from ottla.coordinator.group.consumer.topic_partitions import (
    NO_PARTS,
    OwnedParts,
    Parts,
    TopicIdPartition,
)
from ottla.model.errors import ErrorCode, KafkaError

IsFree: TypeAlias = Callable[[TopicIdPartition], bool] | None
"""Whether no other member owns a partition; None: no other member owns any."""


class TargetAssignment(NamedTuple):
    """The target assignment of a member, and its epoch."""

    epoch: int
    parts: Parts


def reconcile(
    now: MemberAssignment, aim: TargetAssignment, owned: OwnedParts | None, is_free: IsFree
) -> MemberAssignment:
    """Its next assignment; `owned` is what the member reports to own, None if it did not."""
    if now.state is MemberState.STABLE and now.epoch == aim.epoch:
        return now
    if now.state is MemberState.UNREVOKED:
        if _holds_any(now.revoking, owned):
            return now
        # It has revoked what it had to, and advances by one epoch.
        return _towards(aim, now, now.epoch + 1, owned, is_free)
    if now.state is MemberState.UNKNOWN and (owned is None or owned):
        raise KafkaError(
            ErrorCode.fenced_member_epoch,
            "The member is in a state that this broker does not support. The member must abandon "
            "all its partitions and rejoin.",
        )
    return _towards(aim, now, now.epoch, owned, is_free)


def _towards(
    aim: TargetAssignment,
    now: MemberAssignment,
    epoch: int,
    owned: OwnedParts | None,
    is_free: IsFree,
) -> MemberAssignment:
    retained = now.assigned & aim.parts
    revoking = now.assigned - retained
    if revoking and _holds_any(revoking, owned):
        return MemberAssignment(epoch, now.epoch, MemberState.UNREVOKED, retained, revoking)
    if is_free is None:
        return MemberAssignment(aim.epoch, now.epoch, MemberState.STABLE, aim.parts, NO_PARTS)
    missing = aim.parts - retained
    owned_by_others = [part for part in missing if not is_free(part)]
    free = missing.difference(owned_by_others)
    state = MemberState.UNRELEASED if owned_by_others else MemberState.STABLE
    return MemberAssignment(aim.epoch, now.epoch, state, retained | free, NO_PARTS)


def _holds_any(parts: Parts, owned: OwnedParts | None) -> bool:
    """A member that does not report its partitions may own all of them."""
    return owned is None or not parts.isdisjoint(owned)
