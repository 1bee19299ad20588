"""From what a member holds towards what it shall hold.

Pure. A member first gives up what is not its own any more, and says so, before it comes to the
target's epoch; it gets at once what nobody else holds, and waits for the rest. So a partition is
never held by two members, however late one of them is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ottla.coordinator.group.consumer.member import MemberAssignment, MemberState
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts, TopicIdPartition
from ottla.model.errors import ErrorCode, KafkaError

IsFree: TypeAlias = Callable[[TopicIdPartition], bool]


class TargetAssignment(NamedTuple):
    """What a member shall hold, as of which epoch."""

    epoch: int
    parts: Parts


def reconciled(
    now: MemberAssignment, aim: TargetAssignment, owned: Parts | None, is_free: IsFree
) -> MemberAssignment:
    """How it stands next; `owned` is what it says it holds, None when it says nothing."""
    if now.state is MemberState.STABLE and now.epoch == aim.epoch:
        return now
    if now.state is MemberState.UNREVOKED:
        if _holds_any(now.revoking, owned):
            return now
        # Having given up what it had to, it has caught up with one epoch more.
        return _towards(aim, now, now.epoch + 1, owned, is_free)
    if now.state is MemberState.UNKNOWN and (owned is None or owned):
        raise KafkaError(
            ErrorCode.fenced_member_epoch,
            "The member is in a state that is not known here. The member must abandon all its "
            "partitions and rejoin.",
        )
    return _towards(aim, now, now.epoch, owned, is_free)


def _towards(
    aim: TargetAssignment, now: MemberAssignment, epoch: int, owned: Parts | None, is_free: IsFree
) -> MemberAssignment:
    kept = now.assigned & aim.parts
    revoking = now.assigned - kept
    if revoking and _holds_any(revoking, owned):
        return MemberAssignment(epoch, now.epoch, MemberState.UNREVOKED, kept, revoking)
    missing = aim.parts - kept
    free = frozenset(part for part in missing if is_free(part))
    state = MemberState.STABLE if free == missing else MemberState.UNRELEASED
    return MemberAssignment(aim.epoch, now.epoch, state, kept | free, NO_PARTS)


def _holds_any(parts: Parts, owned: Parts | None) -> bool:
    """One that does not say what it holds may hold all of it."""
    return owned is None or not parts.isdisjoint(owned)
