"""JoinGroup: who may join a group, and when that starts a rebalance.

Pure, of (group, request, now). The reply is sent when the rebalance completes, or at once if there
is nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import (
    ClassicMember,
    GroupPhase,
    JoinAnswer,
    JoinReply,
    Protocol,
)
from ottla.coordinator.group.classic.rebalance import (
    complete_if_all_joined,
    prepare,
    rebalance,
    restart_session,
    session_key,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import group_record
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import Outcome
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError

NEW_MEMBER_LIMIT_MS: Final = 300_000
"""How long a new member may wait for its first generation."""


class JoinRequest(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    needs_known_id: bool = True
    """The client supports MEMBER_ID_REQUIRED: it gets an id first and joins again with it."""
    can_skip_assignment: bool = True


@dataclass(frozen=True, slots=True)
class JoinDecision:
    """One JoinGroup request being decided."""

    group: ClassicGroup
    request: JoinRequest
    answer: JoinAnswer
    draft: Draft
    limits: GroupSettings
    new_id: Callable[[], str]

    def decide(self) -> None:
        """Errors are raised; other replies are sent now or when the rebalance completes."""
        group, request = self.group, self.request
        if not accepts(group, request.member_id, self.limits.max_size):
            if group.remove(request.member_id) is not None:
                self.draft.cancel(session_key(group, request.member_id))
            raise KafkaError(ErrorCode.group_max_size_reached)
        if group.phase is GroupPhase.DEAD:
            raise KafkaError(ErrorCode.coordinator_not_available)
        if not group.supports(request.protocol_type, request.protocols):
            raise KafkaError(ErrorCode.inconsistent_group_protocol)
        if request.member_id:
            self._rejoin()
        else:
            self._join_first()
        complete_if_all_joined(group, self.draft)

    def _reply(self, reply: JoinReply) -> None:
        self.draft.answer(self.answer, reply)

    def _join_first(self) -> None:
        group, request = self.group, self.request
        if request.instance_id is not None:
            member_id = f"{request.instance_id}-{self.new_id()}"
            if request.instance_id in group.static:
                self._replace_static(member_id)
            else:
                self._add(member_id)
            return
        member_id = f"{request.client_id}-{self.new_id()}"
        if request.needs_known_id:
            # A client that retries without an id would otherwise add a member each time.
            group.expect(member_id)
            self.draft.set(session_key(group, member_id), request.session_timeout_ms)
            self._reply(JoinReply(ErrorCode.member_id_required, member_id))
        else:
            self._add(member_id)

    def _rejoin(self) -> None:
        group, request = self.group, self.request
        if request.member_id in group.pending and request.instance_id is None:
            self._add(request.member_id)
            return
        member = group.require_member(request.member_id, request.instance_id)
        is_same = member.protocols == request.protocols
        is_leader = member.id == group.leader
        match group.phase:
            case GroupPhase.COMPLETING if is_same:  # it did not get the reply
                restart_session(group, member, self.draft)
                self._reply(group.join_reply(member, with_members=is_leader))
            case GroupPhase.STABLE if is_same and not is_leader:
                restart_session(group, member, self.draft)
                self._reply(group.join_reply(member, with_members=False))
            case GroupPhase.PREPARING | GroupPhase.COMPLETING | GroupPhase.STABLE:
                self._update(member)
                why = f"{'leader' if is_leader else 'member'} {member.id!r} rejoined"
                rebalance(group, self.draft, self.limits, why)
            case _:
                raise KafkaError(ErrorCode.unknown_member_id)

    def _add(self, member_id: str) -> None:
        group, request = self.group, self.request
        member = ClassicMember(
            member_id,
            request.instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            is_new=True,
            awaits_join=self.answer,
        )
        if group.phase is GroupPhase.PREPARING and group.is_initial:
            group.new_member_added = True
        group.add(member, request.protocol_type)
        self.draft.set(session_key(group, member_id), NEW_MEMBER_LIMIT_MS)
        rebalance(group, self.draft, self.limits, f"member {member_id!r} joined")

    def _update(self, member: ClassicMember) -> None:
        request = self.request
        member.answer_join(JoinReply(ErrorCode.rebalance_in_progress, member.id), self.draft)
        self.group.change_protocols(member, request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.awaits_join = self.answer

    # Static members that rejoin

    def _replace_static(self, new_id: str) -> None:
        """A static member is replaced under a new member id; the old one is fenced."""
        group, request = self.group, self.request
        assert request.instance_id is not None
        old_id, old_leader = group.static[request.instance_id], group.leader
        before = group.members[old_id]
        old = (before.protocols, before.rebalance_timeout_ms, before.session_timeout_ms)
        before.answer_waiting(ErrorCode.fenced_instance_id, self.draft)
        self.draft.cancel(session_key(group, old_id))
        member = group.rename(request.instance_id, new_id)
        self._update(member)
        restart_session(group, member, self.draft)
        if group.phase is not GroupPhase.STABLE:
            if group.phase is GroupPhase.COMPLETING:  # the leader may have got its old id
                why = f"static member {new_id!r} replaced {old_id!r}"
                prepare(group, self.draft, self.limits, why)
            return
        if group.choose_protocol() != group.protocol:
            why = f"static member {new_id!r} changed the protocol"
            prepare(group, self.draft, self.limits, why)
            return

        def then(code: ErrorCode, now: WallMs) -> Outcome[None]:
            draft = Draft(now)
            if code is not ErrorCode.none:
                self._put_back(member, old_id, old, code, draft)
            elif group.members.get(new_id) is member and group.phase is GroupPhase.STABLE:
                self._welcome_back(member, old_leader, draft)
            return draft.outcome(None)

        assignments = {other.id: other.assignment for other in group.members.values()}
        self.draft.records.append(group_record(group, assignments))
        self.draft.then = then

    def _welcome_back(self, member: ClassicMember, old_leader: str | None, draft: Draft) -> None:
        """Its assignment is still valid, so no rebalance is needed."""
        group = self.group
        is_leader = member.id == group.leader
        if self.request.can_skip_assignment:
            reply = group.join_reply(member, with_members=is_leader)
            member.answer_join(reply._replace(skip_assignment=is_leader), draft)
        else:  # one that cannot skip it must not think that it leads
            reply = group.join_reply(member, with_members=False)
            member.answer_join(reply._replace(leader=old_leader or ""), draft)

    def _put_back(
        self,
        member: ClassicMember,
        old_id: str,
        old: tuple[tuple[Protocol, ...], int, int],
        code: ErrorCode,
        draft: Draft,
    ) -> None:
        group = self.group
        member.answer_join(JoinReply(code), draft)
        if group.members.get(member.id) is not member or member.instance_id is None:
            return
        draft.cancel(session_key(group, member.id))
        group.rename(member.instance_id, old_id)
        group.change_protocols(member, old[0])
        _, member.rebalance_timeout_ms, member.session_timeout_ms = old
        restart_session(group, member, draft)


def accepts(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """Whether the group has room for a new member, or this is one of its members."""
    member = group.members.get(member_id)
    match group.phase:
        case GroupPhase.EMPTY | GroupPhase.DEAD:
            return True
        case GroupPhase.PREPARING:
            waits = member is not None and member.awaits_join is not None
            return waits or group.awaiting_join < max_size
        case _:
            return member is not None or len(group.members) < max_size
