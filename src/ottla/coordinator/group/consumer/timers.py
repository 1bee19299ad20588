"""What runs for a member of a consumer group, by the keys of its timers. Pure."""

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
"""Until then it must have given up what it was told to."""
REJOIN: Final = "rejoin"
"""Until then a classic member must have joined again, having heard that it should."""

WHY: Final = {
    SESSION: "was not heard of",
    REVOKE: "did not give up its partitions",
    REJOIN: "did not rejoin",
    SYNC: "did not ask for its assignment",
}
"""What its running out means. `SYNC` is a classic member's, between its join and its sync."""


class MemberTimeouts(NamedTuple):
    """What decisions about a group rest on, besides the group."""

    limits: GroupSettings
    image: Image


def hear(group: ConsumerGroup, member: Member, draft: Draft, limits: GroupSettings) -> None:
    """The member is alive: its session begins anew."""
    classic = member.classic
    session_ms = limits.pace(group.id).consumer_session_timeout_ms
    draft.set(
        TimerKey(SESSION, group.id, member.id),
        session_ms if classic is None else classic.session_timeout_ms,
    )


def await_revocation(group: ConsumerGroup, member: Member, draft: Draft) -> None:
    """From now on, if there is something to give up."""
    key = TimerKey(REVOKE, group.id, member.id)
    if member.classic is None and member.standing.state is MemberState.UNREVOKED:
        draft.set(key, member.profile.rebalance_timeout_ms)
    else:
        draft.cancel(key)


def await_rejoin(group: ConsumerGroup, member: Member, draft: Draft) -> None:
    """From when it first heard of it."""
    if member.id not in group.rejoining:
        group.rejoining.add(member.id)
        draft.set(TimerKey(REJOIN, group.id, member.id), member.profile.rebalance_timeout_ms)


def forget(group_id: str, member_id: str, draft: Draft) -> None:
    """Its session runs on: if its removal cannot be written, that is what tries it again."""
    for kind in (REVOKE, REJOIN, SYNC):
        draft.cancel(TimerKey(kind, group_id, member_id))
