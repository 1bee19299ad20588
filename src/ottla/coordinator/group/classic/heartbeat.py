"""Heartbeat, LeaveGroup and session timeouts of classic groups.

Pure, of (group, request, now).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.coordinator.group.classic.rebalance import (
    complete_if_all_joined,
    drop_member,
    rebalance,
    restart_session,
    session_key,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.settings import GroupSettings
from ottla.model.errors import ErrorCode, KafkaError


class MemberIdentity(NamedTuple):
    """A member by its id, or a static member by its instance id alone."""

    member_id: str
    instance_id: str | None = None


def heartbeat(
    group: ClassicGroup, identity: MemberIdentity, generation: int, draft: Draft
) -> ErrorCode:
    """REBALANCE_IN_PROGRESS if the member has to rejoin; other errors are raised.

    A member that has joined and waits for its assignment gets `none`: it has nothing to do.
    """
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.coordinator_not_available)
    member = group.require_member(identity.member_id, identity.instance_id)
    if generation != group.generation:
        raise KafkaError(ErrorCode.illegal_generation)
    if group.phase is GroupPhase.EMPTY:
        raise KafkaError(ErrorCode.unknown_member_id)
    restart_session(group, member, draft)
    joining = group.phase is GroupPhase.PREPARING
    return ErrorCode.rebalance_in_progress if joining else ErrorCode.none


def leave(
    group: ClassicGroup, leavers: Iterable[MemberIdentity], draft: Draft, limits: GroupSettings
) -> list[ErrorCode]:
    """One error code for each; one rebalance for all of them."""
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.coordinator_not_available)
    codes = [_leave_one(group, leaver, draft) for leaver in leavers]
    if ErrorCode.none in codes and group.phase is not GroupPhase.EMPTY:
        rebalance(group, draft, limits, "members left")
    return codes


def _leave_one(group: ClassicGroup, leaver: MemberIdentity, draft: Draft) -> ErrorCode:
    member_id = leaver.member_id
    if not member_id and leaver.instance_id is not None:
        member_id = group.static.get(leaver.instance_id, "")
    if member_id in group.pending:
        group.remove(member_id)
        draft.cancel(session_key(group, member_id))
        return ErrorCode.none
    try:
        member = group.require_member(member_id, leaver.instance_id)
    except KafkaError as refusal:
        return refusal.code
    drop_member(group, member, draft)
    return ErrorCode.none


def session_timeout(
    group: ClassicGroup, member_id: str, draft: Draft, limits: GroupSettings
) -> None:
    """A member sent no heartbeat within its session timeout."""
    if member_id in group.pending:
        group.remove(member_id)
        complete_if_all_joined(group, draft)
        return
    member = group.members.get(member_id)
    if member is None or (member.waits and not member.is_new):
        return  # a member waiting for a reply sends no heartbeats; the reply restarts its session
    drop_member(group, member, draft)
    rebalance(group, draft, limits, f"session of member {member_id!r} expired")
