"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in a consumer group.

Pure, of (group, request, now). Such a member moves towards its target as any other does, only that
it says what it holds when it joins, hears what it gets when it syncs, and is told by an error in
its heartbeats that it should join again. Its generation is its epoch. Nobody waits for anybody: a
join is answered as soon as it is written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ottla.coordinator.group.classic.group import CONSUMER
from ottla.coordinator.group.classic.heartbeat import LeavingMember
from ottla.coordinator.group.classic.join import JoinRequest
from ottla.coordinator.group.classic.member import JoinReply, SyncReply
from ottla.coordinator.group.classic.rebalance import SYNC
from ottla.coordinator.group.classic.sync import SyncRequest
from ottla.coordinator.group.consumer.classic_metadata import (
    ClassicSubscription,
    read_subscription,
    write_assignment,
)
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.heartbeat import (
    check_room,
    rebalance_after_leave,
    remove_member,
    settle,
)
from ottla.coordinator.group.consumer.member import (
    JOINS,
    ClassicProtocolState,
    Member,
    MemberProfile,
    MemberState,
)
from ottla.coordinator.group.consumer.pending_group import PendingGroup
from ottla.coordinator.group.consumer.timers import REJOIN, MemberTimeouts, await_rejoin, hear
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts, by_name, from_names
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import TimerKey
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class ClassicJoin:
    """One join under way."""

    group: ConsumerGroup
    ask: JoinRequest
    draft: Draft
    terms: MemberTimeouts

    def decide(self, new_id: Callable[[], str]) -> tuple[JoinReply, PendingGroup | None]:
        """The answer, for when it is written down, and the group as it is then."""
        group, ask = self.group, self.ask
        check_room(group, ask.member_id, ask.instance_id, self.terms.limits.consumer_max_size)
        subscription = self._subscription()
        named = ask.client_id if ask.instance_id is None else ask.instance_id
        member_id = ask.member_id or f"{named}-{new_id()}"
        if not ask.member_id and ask.needs_known_id:
            return JoinReply(ErrorCode.member_id_required, member_id), None
        member, revision = self._advance(member_id, subscription)
        group.rejoining.discard(member_id)
        self.draft.cancel(TimerKey(REJOIN, group.id, member_id))
        self.draft.set(TimerKey(SYNC, group.id, member_id), ask.rebalance_timeout_ms)
        hear(group, member, self.draft, self.terms.limits)
        reply = JoinReply(
            member_id=member_id,
            generation=member.epoch,
            protocol_type=CONSUMER,
            protocol=ask.protocols[0].name,
        )
        return reply, revision

    def _subscription(self) -> ClassicSubscription:
        ask = self.ask
        if ask.protocol_type == CONSUMER and supports(self.group, ask):
            subscription = read_subscription(ask.protocols[0].metadata)
            if subscription is not None:
                return subscription
        raise KafkaError(ErrorCode.inconsistent_group_protocol)

    def _advance(
        self, member_id: str, subscription: ClassicSubscription
    ) -> tuple[Member, PendingGroup]:
        revision = PendingGroup(self.group, self.draft, self.terms.image)
        before = self._member(revision, member_id)
        profile = self._profile(before.profile, subscription)
        revision.put(replace(before, profile=profile))
        changed = (profile.topics, None) != (before.profile.topics, before.profile.pattern)
        revision.resolve({})
        owned = from_names(self.terms.image, subscription.owned)
        limits = self.terms.limits
        return settle(revision, member_id, owned, limits, changed=changed), revision

    def _member(self, revision: PendingGroup, member_id: str) -> Member:
        group, ask = self.group, self.ask
        holder = group.static_member(ask.instance_id)
        if ask.instance_id is None or holder is None:
            if ask.instance_id is not None and ask.member_id:
                group.known(ask.member_id, ask.instance_id)  # refuses
            return group.members.get(member_id) or Member(member_id)
        if ask.member_id:
            return group.known(ask.member_id, ask.instance_id)
        standing = holder.standing._replace(epoch=JOINS, previous_epoch=JOINS)
        member = Member(member_id, holder.profile, standing)
        revision.rename(holder, member)
        return member

    def _profile(self, now: MemberProfile, subscription: ClassicSubscription) -> MemberProfile:
        ask = self.ask
        return MemberProfile(
            ask.instance_id,
            now.rack_id if subscription.rack_id is None else subscription.rack_id,
            ask.client_id,
            ask.client_host,
            tuple(sorted(set(subscription.topics))),
            None,
            ask.rebalance_timeout_ms,
            now.assignor,
            ClassicProtocolState(ask.session_timeout_ms, ask.protocols),
        )


def supports(group: ConsumerGroup, ask: JoinRequest) -> bool:
    """Whether some protocol of the member is one that every classic member knows."""
    classic = group.classic_members()
    known = Counter(
        name for member in classic if member.classic for name, _ in member.classic.protocols
    )
    return any(known[protocol.name] == len(classic) for protocol in ask.protocols)


def sync(group: ConsumerGroup, ask: SyncRequest, draft: Draft, terms: MemberTimeouts) -> SyncReply:
    """What the member holds now."""
    member, classic = _classic(group, LeavingMember(ask.member_id, ask.instance_id), ask.generation)
    differs = ask.protocol_type not in (None, CONSUMER)
    if differs or ask.protocol not in (None, classic.protocols[0].name):
        raise KafkaError(ErrorCode.inconsistent_group_protocol)
    if group.epoch > member.epoch and member.standing.state is not MemberState.UNREVOKED:
        await_rejoin(group, member, draft)
        raise KafkaError(ErrorCode.rebalance_in_progress)
    draft.cancel(TimerKey(SYNC, group.id, member.id))
    hear(group, member, draft, terms.limits)
    assignment = assignment_of(member, member.standing.assigned, terms.image)
    return SyncReply(ErrorCode.none, assignment, ask.protocol_type, ask.protocol)


def assignment_of(member: Member, parts: Parts | None, image: Image) -> bytes:
    """What a classic member is given, in the words of its own protocol."""
    assert member.classic is not None, f"{member.id} does not speak the classic protocol"
    subscription = read_subscription(member.classic.protocols[0].metadata)
    version = 0 if subscription is None else subscription.version
    return write_assignment(by_name(image, parts or NO_PARTS), version)


def heartbeat(
    group: ConsumerGroup, who: LeavingMember, generation: int, draft: Draft, terms: MemberTimeouts
) -> ErrorCode:
    """Whether it should join again: to catch up, to give something up, or to get the rest."""
    member, _ = _classic(group, who, generation)
    hear(group, member, draft, terms.limits)
    standing = member.standing
    is_due = standing.state is MemberState.UNREVOKED or (
        standing.state is MemberState.UNRELEASED and _all_free(group, member)
    )
    if member.epoch < group.epoch or is_due:
        await_rejoin(group, member, draft)
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


def _all_free(group: ConsumerGroup, member: Member) -> bool:
    target = group.target.get(member.id, NO_PARTS)
    return all(group.is_free(part, member.id) for part in target)


def leave(
    group: ConsumerGroup, leavers: Iterable[LeavingMember], draft: Draft, terms: MemberTimeouts
) -> list[ErrorCode]:
    """What became of each; an operator may send away members of either protocol."""
    gone: dict[str, Member] = {}
    codes = []
    for leaver in leavers:
        member_id = leaver.member_id or group.static.get(leaver.instance_id or "", "")
        try:
            member = group.known(member_id, leaver.instance_id)
        except KafkaError as refusal:
            codes.append(refusal.code)
            continue
        gone[member.id] = member
        codes.append(ErrorCode.none)
    if gone:
        rebalance_after_leave(remove_member(group, gone.values(), draft, terms.image, "leaves"))
    return codes


def _classic(
    group: ConsumerGroup, who: LeavingMember, generation: int | None = None
) -> tuple[Member, ClassicProtocolState]:
    """The member who says it is this, if it speaks the classic protocol."""
    member = group.known(who.member_id, who.instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.unknown_member_id)
    if generation is not None and generation != member.epoch:
        raise KafkaError(ErrorCode.illegal_generation)
    return member, member.classic
