"""SyncGroup: the leader's assignment is stored, and each member is told its part.

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
    hear,
    prepare,
    session_key,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import TimerKey, group_record
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import Outcome
from ottla.model.errors import ErrorCode, KafkaError


class SyncRequest(NamedTuple):
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]


def sync(
    group: ClassicGroup, ask: SyncRequest, answer: SyncAnswer, draft: Draft, limits: GroupSettings
) -> None:
    """Refusals are raised; the answer comes once the assignment is stored."""
    member = _check(group, ask)
    match group.phase:
        case GroupPhase.PREPARING:
            raise KafkaError(ErrorCode.rebalance_in_progress)
        case GroupPhase.STABLE:
            _synced(group, member, draft)
            hear(group, member, draft)
            answer(_reply(group, member))
        case GroupPhase.COMPLETING:
            _synced(group, member, draft)
            member.answer_sync(SyncReply(ErrorCode.rebalance_in_progress))
            member.awaits_sync = answer
            if member.id == group.leader:
                _store(group, ask.assignments, draft, limits)
        case _:
            raise KafkaError(ErrorCode.unknown_member_id)


def _check(group: ClassicGroup, ask: SyncRequest) -> ClassicMember:
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.coordinator_not_available)
    member = group.known(ask.member_id, ask.instance_id)
    if ask.generation != group.generation:
        raise KafkaError(ErrorCode.illegal_generation)
    differs = ask.protocol_type is not None and ask.protocol_type != group.protocol_type
    if differs or (ask.protocol is not None and ask.protocol != group.protocol):
        raise KafkaError(ErrorCode.inconsistent_group_protocol)
    return member


def _synced(group: ClassicGroup, member: ClassicMember, draft: Draft) -> None:
    group.unsynced.discard(member.id)
    if not group.unsynced:
        draft.cancel(TimerKey(SYNC, group.id))


def _store(
    group: ClassicGroup, assignments: Mapping[str, bytes], draft: Draft, limits: GroupSettings
) -> None:
    """Write the generation down; what comes of it is decided when that is committed."""
    generation = group.generation
    given = {member_id: assignments.get(member_id, b"") for member_id in group.members}

    def then(code: ErrorCode, now: int) -> Outcome[None]:
        later = Draft(now)
        # Another rebalance may have begun meanwhile; then it answers everybody.
        if group.phase is GroupPhase.COMPLETING and group.generation == generation:
            if code is ErrorCode.none:
                _hand_out(group, given, later)
            else:
                clear_assignments(group, code)
                prepare(group, later, limits, "its assignment could not be stored")
        return later.outcome(None)

    draft.records.append(group_record(group, given))
    draft.then = then


def _hand_out(group: ClassicGroup, given: Mapping[str, bytes], draft: Draft) -> None:
    group.move(GroupPhase.STABLE, draft.now)
    for member in group.members.values():
        member.assignment = given.get(member.id, b"")
        if member.awaits_sync is not None:
            hear(group, member, draft)
            member.answer_sync(_reply(group, member))


def _reply(group: ClassicGroup, member: ClassicMember) -> SyncReply:
    return SyncReply(ErrorCode.none, member.assignment, group.protocol_type, group.protocol)


def sync_timeout(group: ClassicGroup, draft: Draft, limits: GroupSettings) -> None:
    """Members that never asked for their part are gone."""
    if group.phase not in (GroupPhase.COMPLETING, GroupPhase.STABLE) or not group.unsynced:
        return
    absent = sorted(group.unsynced)
    for member_id in absent:
        group.remove(member_id)
        draft.cancel(session_key(group, member_id))
    prepare(group, draft, limits, f"{', '.join(absent)} did not ask for an assignment")
