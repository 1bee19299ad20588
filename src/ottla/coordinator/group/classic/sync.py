"""SyncGroup: the leader's assignment is stored, and each member gets its part.

Pure, of (group, request, now).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import ClassicMember, GroupPhase, SyncAnswer, SyncReply
from ottla.coordinator.group.classic.rebalance import (
    SYNC,
    clear_assignments,
    prepare,
    restart_session,
    session_key,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import TimerKey, group_record
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import Outcome
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError


class SyncRequest(NamedTuple):
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]


def sync(
    group: ClassicGroup,
    request: SyncRequest,
    answer: SyncAnswer,
    draft: Draft,
    limits: GroupSettings,
) -> None:
    """Errors are raised; the reply is sent once the assignment is stored."""
    member = _check(group, request)
    match group.phase:
        case GroupPhase.PREPARING:
            raise KafkaError(ErrorCode.rebalance_in_progress)
        case GroupPhase.STABLE:
            _mark_synced(group, member, draft)
            restart_session(group, member, draft)
            draft.answer(answer, _reply(group, member))
        case GroupPhase.COMPLETING:
            _mark_synced(group, member, draft)
            member.answer_sync(SyncReply(ErrorCode.rebalance_in_progress), draft)
            member.awaits_sync = answer
            if member.id == group.leader:
                _store(group, request.assignments, draft, limits)
        case _:
            raise KafkaError(ErrorCode.unknown_member_id)


def _check(group: ClassicGroup, request: SyncRequest) -> ClassicMember:
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.coordinator_not_available)
    member = group.require_member(request.member_id, request.instance_id)
    if request.generation != group.generation:
        raise KafkaError(ErrorCode.illegal_generation)
    differs = request.protocol_type is not None and request.protocol_type != group.protocol_type
    if differs or (request.protocol is not None and request.protocol != group.protocol):
        raise KafkaError(ErrorCode.inconsistent_group_protocol)
    return member


def _mark_synced(group: ClassicGroup, member: ClassicMember, draft: Draft) -> None:
    group.unsynced.discard(member.id)
    if not group.unsynced:
        draft.cancel(TimerKey(SYNC, group.id))


def _store(
    group: ClassicGroup, assignments: Mapping[str, bytes], draft: Draft, limits: GroupSettings
) -> None:
    """Write the generation; members get their assignments when it is committed."""
    generation = group.generation
    member_assignments = {member_id: assignments.get(member_id, b"") for member_id in group.members}

    def then(code: ErrorCode, now: WallMs) -> Outcome[None]:
        later = Draft(now)
        # Another rebalance may have started meanwhile; then that one answers all members.
        if group.phase is GroupPhase.COMPLETING and group.generation == generation:
            if code is ErrorCode.none:
                _hand_out(group, member_assignments, later)
            else:
                clear_assignments(group, code, later)
                prepare(group, later, limits, f"the assignment was not stored: {code.name}")
        return later.outcome(None)

    draft.records.append(group_record(group, member_assignments))
    draft.then = then


def _hand_out(group: ClassicGroup, member_assignments: Mapping[str, bytes], draft: Draft) -> None:
    group.move(GroupPhase.STABLE, draft.now)
    for member in group.members.values():
        member.assignment = member_assignments.get(member.id, b"")
        if member.awaits_sync is not None:
            restart_session(group, member, draft)
            member.answer_sync(_reply(group, member), draft)


def _reply(group: ClassicGroup, member: ClassicMember) -> SyncReply:
    return SyncReply(ErrorCode.none, member.assignment, group.protocol_type, group.protocol)


def sync_timeout(group: ClassicGroup, draft: Draft, limits: GroupSettings) -> None:
    """Remove members that did not send SyncGroup within the rebalance timeout."""
    if group.phase not in (GroupPhase.COMPLETING, GroupPhase.STABLE) or not group.unsynced:
        return
    absent = sorted(group.unsynced)
    for member_id in absent:
        group.remove(member_id)
        draft.cancel(session_key(group, member_id))
    prepare(group, draft, limits, f"no SyncGroup from members {', '.join(absent)}")
