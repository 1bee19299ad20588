"""The timers of a member of a consumer group, and the context of decisions. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.coordinator.group.classic.rebalance import SESSION, SYNC
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import Member, MemberState
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import TimerKey
from ottla.coordinator.group.settings import GroupSettings
from ottla.metadata.image import Image

REVOKE: Final = "revoke"
"""The time for a member to confirm its revocations."""
REJOIN: Final = "rejoin"
"""The time for a classic member to rejoin after it was told to."""

WHY: Final = {
    SESSION: "session timeout expired",
    REVOKE: "did not revoke its partitions within its rebalance timeout",
    REJOIN: "did not rejoin within its rebalance timeout",
    SYNC: "sent no SyncGroup within its rebalance timeout",
}
"""Why a member is removed when the timer expires. `SYNC` runs between a classic member's join and
its sync."""


class GroupContext(NamedTuple):
    """What decisions need besides the group."""

    limits: GroupSettings
    image: Image


def restart_session(
    group: ConsumerGroup, member: Member, draft: Draft, limits: GroupSettings
) -> None:
    """The member is alive: restart its session timeout."""
    classic = member.classic
    session_ms = limits.pace(group.id).consumer_session_timeout_ms
    draft.set(
        TimerKey(SESSION, group.id, member.id),
        session_ms if classic is None else classic.session_timeout_ms,
    )


def await_revocation(group: ConsumerGroup, member: Member, draft: Draft) -> None:
    """Start the revocation timer if the member has to revoke partitions, else cancel it."""
    key = TimerKey(REVOKE, group.id, member.id)
    if member.classic is None and member.standing.state is MemberState.UNREVOKED:
        draft.set(key, member.profile.rebalance_timeout_ms)
    else:
        draft.cancel(key)


def await_rejoin(group: ConsumerGroup, member: Member, draft: Draft) -> None:
    """Start the rejoin timer, unless it is running."""
    if member.id not in group.rejoining:
        group.rejoining.add(member.id)
        draft.set(TimerKey(REJOIN, group.id, member.id), member.profile.rebalance_timeout_ms)


def forget(group_id: str, member_id: str, draft: Draft) -> None:
    """Cancel its timers, except the session: if the removal is not written, that one retries."""
    for kind in (REVOKE, REJOIN, SYNC):
        draft.cancel(TimerKey(kind, group_id, member_id))
