"""From a change of members to the next generation.

Pure, of (group, now): replies, log lines, timers and records go into the draft. A rebalance
collects joins until every member has rejoined or the longest rebalance timeout is over; the first
one of an empty group waits `group.initial.rebalance.delay.ms` longer, so that members that start
together form one generation.
"""

from __future__ import annotations

from typing import Final

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import ClassicMember, GroupPhase, JoinReply, SyncReply
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import TimerKey, group_record
from ottla.coordinator.group.settings import GroupSettings
from ottla.model.errors import ErrorCode

SESSION: Final = "session"
JOIN: Final = "join"
SYNC: Final = "sync"


def session_key(group: ClassicGroup, member_id: str) -> TimerKey:
    return TimerKey(SESSION, group.id, member_id)


def restart_session(group: ClassicGroup, member: ClassicMember, draft: Draft) -> None:
    """The member is alive: restart its session timeout."""
    draft.set(session_key(group, member.id), member.session_timeout_ms)


def rebalance(group: ClassicGroup, draft: Draft, limits: GroupSettings, why: str) -> None:
    """Members changed: start a rebalance, or complete the current one if all have joined."""
    if group.can_rebalance:
        prepare(group, draft, limits, why)
    else:
        complete_if_all_joined(group, draft)


def prepare(group: ClassicGroup, draft: Draft, limits: GroupSettings, why: str) -> None:
    if group.phase is GroupPhase.COMPLETING:
        clear_assignments(group, ErrorCode.rebalance_in_progress, draft)
    group.unsynced.clear()
    draft.cancel(TimerKey(SYNC, group.id))
    draft.log(
        __name__,
        "group %r: rebalance started: state %s -> %s, generation %d, reason: %s",
        group.id,
        group.phase.value,
        GroupPhase.PREPARING.value,
        group.generation,
        why,
    )
    group.is_initial = group.phase is GroupPhase.EMPTY
    group.move(GroupPhase.PREPARING, draft.now)
    if group.is_initial:
        delay_ms = limits.initial_rebalance_delay_ms
        group.new_member_added = False
        group.initial_wait_left_ms = max(0, group.rebalance_timeout_ms - delay_ms)
        draft.set(TimerKey(JOIN, group.id), delay_ms)
    else:
        draft.set(TimerKey(JOIN, group.id), group.rebalance_timeout_ms)
        complete_if_all_joined(group, draft)


def complete_if_all_joined(group: ClassicGroup, draft: Draft) -> None:
    if group.phase is GroupPhase.PREPARING and not group.is_initial and group.all_joined:
        complete(group, draft)


def join_timeout(group: ClassicGroup, draft: Draft, limits: GroupSettings) -> None:
    """The join timeout expired; the first rebalance waits again while new members join."""
    if group.phase is not GroupPhase.PREPARING:
        return
    delay_ms = min(limits.initial_rebalance_delay_ms, group.initial_wait_left_ms)
    if group.is_initial and group.new_member_added and delay_ms:
        group.new_member_added = False
        group.initial_wait_left_ms -= delay_ms
        draft.set(TimerKey(JOIN, group.id), delay_ms)
        return
    complete(group, draft)


def complete(group: ClassicGroup, draft: Draft) -> None:
    """Start the next generation with the members that have joined."""
    _drop_absent(group, draft)
    if group.members and not _leader_is_here(group):
        # Only static members are left, and none has rejoined: wait for them a while longer.
        draft.set(TimerKey(JOIN, group.id), group.rebalance_timeout_ms)
        return
    draft.cancel(TimerKey(JOIN, group.id))
    group.is_initial = False
    group.generation += 1
    if not group.members:
        group.protocol = None
        group.leader = None
        group.note_subscriptions()
        group.move(GroupPhase.EMPTY, draft.now)
        draft.records.append(group_record(group, {}))
        return
    group.protocol = group.choose_protocol()
    group.note_subscriptions()
    group.move(GroupPhase.COMPLETING, draft.now)
    draft.log(
        __name__,
        "group %r: generation %d has %d members",
        group.id,
        group.generation,
        len(group.members),
    )
    group.unsynced = set(group.members)
    draft.set(TimerKey(SYNC, group.id), group.rebalance_timeout_ms)
    for member in group.members.values():
        member.is_new = False
        restart_session(group, member, draft)
        reply = group.join_reply(member, with_members=member.id == group.leader)
        member.answer_join(reply, draft)


def _drop_absent(group: ClassicGroup, draft: Draft) -> None:
    """Remove members that did not rejoin; static ones stay until their session ends."""
    absent = [
        member
        for member in group.members.values()
        if member.awaits_join is None and member.instance_id is None
    ]
    for member in absent:
        draft.log(__name__, "group %r: removed member %r: did not rejoin", group.id, member.id)
        group.remove(member.id)
        draft.cancel(session_key(group, member.id))


def _leader_is_here(group: ClassicGroup) -> bool:
    leader = group.members.get(group.leader or "")
    if leader is None or leader.awaits_join is None:
        joined = [member.id for member in group.members.values() if member.awaits_join is not None]
        if not joined:
            return False
        group.leader = joined[0]
    return True


def clear_assignments(group: ClassicGroup, code: ErrorCode, draft: Draft) -> None:
    """Clear all assignments, and answer waiting SyncGroup requests with this error."""
    for member in group.members.values():
        member.assignment = b""
        member.answer_sync(SyncReply(code), draft)


def drop_member(group: ClassicGroup, member: ClassicMember, draft: Draft) -> None:
    """Remove a member; its waiting requests are answered with UNKNOWN_MEMBER_ID."""
    draft.cancel(session_key(group, member.id))
    member.answer_join(JoinReply(ErrorCode.unknown_member_id), draft)
    member.answer_sync(SyncReply(ErrorCode.unknown_member_id), draft)
    group.remove(member.id)
