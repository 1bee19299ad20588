"""What runs for a member."""

from __future__ import annotations

from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import (
    ClassicProtocolState,
    Member,
    MemberAssignment,
    MemberProfile,
    MemberState,
)
from ottla.coordinator.group.consumer.timers import (
    REJOIN,
    REVOKE,
    WHY,
    await_rejoin,
    await_revocation,
    forget,
    restart_session,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import TimerKey
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import CancelTimer, SetTimer
from ottla.model.clock import WallMs

GROUP = ConsumerGroup("g")


def member(*, classic: bool = False, state: MemberState = MemberState.STABLE) -> Member:
    face = ClassicProtocolState(7_000, ()) if classic else None
    return Member(
        "m", MemberProfile(rebalance_timeout_ms=9_000, classic=face), MemberAssignment(state=state)
    )


def test_a_session_is_as_long_as_the_broker_or_the_classic_member_says() -> None:
    draft = Draft(WallMs(0))
    restart_session(GROUP, member(), draft, GroupSettings(consumer_session_timeout_ms=45_000))
    restart_session(GROUP, member(classic=True), draft, GroupSettings())
    key = TimerKey("session", "g", "m")
    assert draft.timers == [SetTimer(key, 45_000), SetTimer(key, 7_000)]


def test_a_group_with_settings_of_its_own_has_its_own_session() -> None:
    draft, own = Draft(WallMs(0)), GroupSettings(consumer_session_timeout_ms=50_000)
    limits = GroupSettings(paces={"g": own})
    restart_session(GROUP, member(), draft, limits)
    restart_session(ConsumerGroup("other"), member(), draft, limits)
    restart_session(GROUP, member(classic=True), draft, limits)
    assert [timer.delay_ms for timer in draft.timers if isinstance(timer, SetTimer)] == [
        50_000,
        45_000,
        7_000,
    ]


def test_giving_up_is_waited_for_by_the_members_own_timeout() -> None:
    draft = Draft(WallMs(0))
    for each in (
        member(state=MemberState.UNREVOKED),
        member(),
        member(classic=True, state=MemberState.UNREVOKED),
    ):
        await_revocation(GROUP, each, draft)
    key = TimerKey(REVOKE, "g", "m")
    assert draft.timers == [SetTimer(key, 9_000), CancelTimer(key), CancelTimer(key)]


def test_the_time_to_rejoin_runs_from_when_it_was_first_heard_of() -> None:
    draft, group = Draft(WallMs(0)), ConsumerGroup("g")
    for _ in range(2):
        await_rejoin(group, member(classic=True), draft)
    assert draft.timers == [SetTimer(TimerKey(REJOIN, "g", "m"), 9_000)]


def test_nothing_but_its_session_runs_for_one_that_is_gone() -> None:
    draft = Draft(WallMs(0))
    forget("g", "m", draft)
    kinds = [kind for kind in WHY if kind != "session"]
    assert draft.timers == [CancelTimer(TimerKey(kind, "g", "m")) for kind in kinds]
