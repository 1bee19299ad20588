"""Heartbeats, leaving, and members that are not heard of any more.

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
    hear,
    rebalance,
    session_key,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.settings import GroupSettings
from ottla.model.errors import ErrorCode, KafkaError


class LeavingMember(NamedTuple):
    """Who shall go: a member by its id, or a static one by its name alone."""

    member_id: str
    instance_id: str | None = None


def heartbeat(group: ClassicGroup, who: LeavingMember, generation: int, draft: Draft) -> ErrorCode:
    """Whether the member must join again; refusals are raised.

    Who has joined and waits for its assignment is told nothing: it has to do no more.
    """
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.coordinator_not_available)
    member = group.known(who.member_id, who.instance_id)
    if generation != group.generation:
        raise KafkaError(ErrorCode.illegal_generation)
    if group.phase is GroupPhase.EMPTY:
        raise KafkaError(ErrorCode.unknown_member_id)
    hear(group, member, draft)
    joining = group.phase is GroupPhase.PREPARING
    return ErrorCode.rebalance_in_progress if joining else ErrorCode.none


def leave(
    group: ClassicGroup, leavers: Iterable[LeavingMember], draft: Draft, limits: GroupSettings
) -> list[ErrorCode]:
    """What became of each; one rebalance for all of them."""
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.coordinator_not_available)
    codes = [_leave_one(group, leaver, draft) for leaver in leavers]
    if ErrorCode.none in codes and group.phase is not GroupPhase.EMPTY:
        rebalance(group, draft, limits, "members leave")
    return codes


def _leave_one(group: ClassicGroup, leaver: LeavingMember, draft: Draft) -> ErrorCode:
    member_id = leaver.member_id
    if not member_id and leaver.instance_id is not None:
        member_id = group.static.get(leaver.instance_id, "")
    if member_id in group.pending:
        group.remove(member_id)
        draft.cancel(session_key(group, member_id))
        return ErrorCode.none
    try:
        member = group.known(member_id, leaver.instance_id)
    except KafkaError as refusal:
        return refusal.code
    drop_member(group, member, draft)
    return ErrorCode.none


def session_timeout(
    group: ClassicGroup, member_id: str, draft: Draft, limits: GroupSettings
) -> None:
    """Nothing was heard of a member for as long as it may be silent."""
    if member_id in group.pending:
        group.remove(member_id)
        complete_if_all_joined(group, draft)
        return
    member = group.members.get(member_id)
    if member is None or (member.waits and not member.is_new):
        return  # one that waits for us cannot speak; it gets a new session with its answer
    drop_member(group, member, draft)
    rebalance(group, draft, limits, f"{member_id} was not heard of")
