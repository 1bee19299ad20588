"""JoinGroup: who may belong to a group, and when that starts a rebalance.

Pure, of (group, request, now). The reply is given when the rebalance is over, or here at once
where there is nothing to wait for.
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
    SyncReply,
)
from ottla.coordinator.group.classic.rebalance import (
    complete_if_all_joined,
    hear,
    prepare,
    rebalance,
    session_key,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import group_record
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import Outcome
from ottla.model.errors import ErrorCode, KafkaError

NEW_MEMBER_LIMIT_MS: Final = 300_000
"""How long somebody who has never been in a generation may wait for one."""


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
    """The client can be told its id first and come back with it."""
    can_skip_assignment: bool = True


@dataclass(frozen=True, slots=True)
class JoinDecision:
    """One join under way."""

    group: ClassicGroup
    ask: JoinRequest
    answer: JoinAnswer
    draft: Draft
    limits: GroupSettings
    new_id: Callable[[], str]

    def decide(self) -> None:
        """Refusals are raised; everything else is answered now or at the end of the rebalance."""
        group, ask = self.group, self.ask
        if not accepts(group, ask.member_id, self.limits.max_size):
            if group.remove(ask.member_id) is not None:
                self.draft.cancel(session_key(group, ask.member_id))
            raise KafkaError(ErrorCode.group_max_size_reached)
        if group.phase is GroupPhase.DEAD:
            raise KafkaError(ErrorCode.coordinator_not_available)
        if not group.supports(ask.protocol_type, ask.protocols):
            raise KafkaError(ErrorCode.inconsistent_group_protocol)
        if ask.member_id:
            self._known()
        else:
            self._unknown()
        complete_if_all_joined(group, self.draft)

    def _unknown(self) -> None:
        group, ask = self.group, self.ask
        if ask.instance_id is not None:
            member_id = f"{ask.instance_id}-{self.new_id()}"
            if ask.instance_id in group.static:
                self._replace_static(member_id)
            else:
                self._add(member_id)
            return
        member_id = f"{ask.client_id}-{self.new_id()}"
        if ask.needs_known_id:
            # A client that retries without an id would otherwise leave a member behind each time.
            group.expect(member_id)
            self.draft.set(session_key(group, member_id), ask.session_timeout_ms)
            self.answer(JoinReply(ErrorCode.member_id_required, member_id))
        else:
            self._add(member_id)

    def _known(self) -> None:
        group, ask = self.group, self.ask
        if ask.member_id in group.pending and ask.instance_id is None:
            self._add(ask.member_id)
            return
        member = group.known(ask.member_id, ask.instance_id)
        is_same = member.protocols == ask.protocols
        is_leader = member.id == group.leader
        match group.phase:
            case GroupPhase.COMPLETING if is_same:  # it missed the answer
                hear(group, member, self.draft)
                self.answer(group.join_reply(member, with_members=is_leader))
            case GroupPhase.STABLE if is_same and not is_leader:
                hear(group, member, self.draft)
                self.answer(group.join_reply(member, with_members=False))
            case GroupPhase.PREPARING | GroupPhase.COMPLETING | GroupPhase.STABLE:
                self._update(member)
                why = "its leader rejoins" if is_leader else f"{member.id} rejoins"
                rebalance(group, self.draft, self.limits, why)
            case _:
                raise KafkaError(ErrorCode.unknown_member_id)

    def _add(self, member_id: str) -> None:
        group, ask = self.group, self.ask
        member = ClassicMember(
            member_id,
            ask.instance_id,
            ask.client_id,
            ask.client_host,
            ask.rebalance_timeout_ms,
            ask.session_timeout_ms,
            ask.protocols,
            is_new=True,
            awaits_join=self.answer,
        )
        if group.phase is GroupPhase.PREPARING and group.is_initial:
            group.new_member_added = True
        group.add(member, ask.protocol_type)
        self.draft.set(session_key(group, member_id), NEW_MEMBER_LIMIT_MS)
        rebalance(group, self.draft, self.limits, f"{member_id} joins")

    def _update(self, member: ClassicMember) -> None:
        ask = self.ask
        member.answer_join(JoinReply(ErrorCode.rebalance_in_progress, member.id))
        self.group.change_protocols(member, ask.protocols)
        member.rebalance_timeout_ms = ask.rebalance_timeout_ms
        member.session_timeout_ms = ask.session_timeout_ms
        member.awaits_join = self.answer

    # Static members that come back

    def _replace_static(self, new_id: str) -> None:
        """The place of a static member is taken over under a new id; the old one is fenced."""
        group, ask = self.group, self.ask
        assert ask.instance_id is not None
        old_id, old_leader = group.static[ask.instance_id], group.leader
        before = group.members[old_id]
        old = (before.protocols, before.rebalance_timeout_ms, before.session_timeout_ms)
        before.answer_join(JoinReply(ErrorCode.fenced_instance_id, old_id))
        before.answer_sync(SyncReply(ErrorCode.fenced_instance_id))
        self.draft.cancel(session_key(group, old_id))
        member = group.rename(ask.instance_id, new_id)
        self._update(member)
        hear(group, member, self.draft)
        if group.phase is not GroupPhase.STABLE:
            if group.phase is GroupPhase.COMPLETING:  # its old id may be on its way to the leader
                prepare(group, self.draft, self.limits, f"{new_id} replaces {old_id}")
            return
        if group.choose_protocol() != group.protocol:
            prepare(group, self.draft, self.limits, f"{new_id} changes the protocol")
            return

        def then(code: ErrorCode, now: int) -> Outcome[None]:
            draft = Draft(now)
            if code is not ErrorCode.none:
                self._put_back(member, old_id, old, code, draft)
            elif group.members.get(new_id) is member and group.phase is GroupPhase.STABLE:
                self._welcome_back(member, old_leader)
            return draft.outcome(None)

        assignments = {each.id: each.assignment for each in group.members.values()}
        self.draft.records.append(group_record(group, assignments))
        self.draft.then = then

    def _welcome_back(self, member: ClassicMember, old_leader: str | None) -> None:
        """Its assignment still holds, so that nobody need be disturbed."""
        group = self.group
        is_leader = member.id == group.leader
        if self.ask.can_skip_assignment:
            reply = group.join_reply(member, with_members=is_leader)
            member.answer_join(reply._replace(skip_assignment=is_leader))
        else:  # one that cannot skip it must not think that it leads
            reply = group.join_reply(member, with_members=False)
            member.answer_join(reply._replace(leader=old_leader or ""))

    def _put_back(
        self,
        member: ClassicMember,
        old_id: str,
        old: tuple[tuple[Protocol, ...], int, int],
        code: ErrorCode,
        draft: Draft,
    ) -> None:
        group = self.group
        member.answer_join(JoinReply(code))
        if group.members.get(member.id) is not member or member.instance_id is None:
            return
        draft.cancel(session_key(group, member.id))
        group.rename(member.instance_id, old_id)
        group.change_protocols(member, old[0])
        _, member.rebalance_timeout_ms, member.session_timeout_ms = old
        hear(group, member, draft)


def accepts(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """Whether there is room for one more, or for one who has a place."""
    member = group.members.get(member_id)
    match group.phase:
        case GroupPhase.EMPTY | GroupPhase.DEAD:
            return True
        case GroupPhase.PREPARING:
            waits = member is not None and member.awaits_join is not None
            return waits or group.awaiting_join < max_size
        case _:
            return member is not None or len(group.members) < max_size
