"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in a consumer group.

Pure, of (group, request, now). Such a member converges to its target like any other, but sends its
owned partitions with JoinGroup, gets its assignment with SyncGroup, and is told to rejoin by an
error in its heartbeats. Its generation is its member epoch. Members do not wait for each other: a
join is answered as soon as its records are committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ottla.coordinator.group.classic.group import CONSUMER
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
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
    Settling,
    check_room,
    rebalance_after_leave,
    remove_member,
    settle,
)
from ottla.coordinator.group.consumer.member import (
    JOINS,
    MEMBER_BYTES,
    ClassicProtocolState,
    Member,
    MemberProfile,
    MemberState,
)
from ottla.coordinator.group.consumer.pending_group import PendingGroup
from ottla.coordinator.group.consumer.timers import (
    REJOIN,
    GroupContext,
    await_rejoin,
    restart_session,
)
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts, by_name, from_names
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.memory import size_of
from ottla.coordinator.group.records import TimerKey
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError


def grows_by(group: ConsumerGroup, request: JoinRequest) -> int:
    """By how many bytes of memory this join makes the group larger."""
    size = size_of(request.protocols)
    member = group.members.get(request.member_id) or group.static_member(request.instance_id)
    if member is None:
        return MEMBER_BYTES + size
    return size - (0 if member.classic is None else size_of(member.classic.protocols))


@dataclass(frozen=True, slots=True)
class ClassicJoin:
    """One JoinGroup request being decided."""

    group: ConsumerGroup
    request: JoinRequest
    draft: Draft
    context: GroupContext

    def decide(self, new_id: Callable[[], str]) -> tuple[JoinReply, PendingGroup | None]:
        """The reply, to be sent once the records are committed, and the group after them."""
        group, request = self.group, self.request
        check_room(
            group, request.member_id, request.instance_id, self.context.limits.consumer_max_size
        )
        subscription = self._subscription()
        named = request.client_id if request.instance_id is None else request.instance_id
        member_id = request.member_id or f"{named}-{new_id()}"
        if not request.member_id and request.needs_known_id:
            return JoinReply(ErrorCode.member_id_required, member_id), None
        member, revision = self._advance(member_id, subscription)
        group.rejoining.discard(member_id)
        self.draft.cancel(TimerKey(REJOIN, group.id, member_id))
        self.draft.set(TimerKey(SYNC, group.id, member_id), request.rebalance_timeout_ms)
        restart_session(group, member, self.draft, self.context.limits)
        reply = JoinReply(
            member_id=member_id,
            generation=member.epoch,
            protocol_type=CONSUMER,
            protocol=request.protocols[0].name,
        )
        return reply, revision

    def _subscription(self) -> ClassicSubscription:
        request = self.request
        if request.protocol_type == CONSUMER and supports(self.group, request):
            subscription = read_subscription(request.protocols[0].metadata)
            if subscription is not None:
                return subscription
        raise KafkaError(ErrorCode.inconsistent_group_protocol)

    def _advance(
        self, member_id: str, subscription: ClassicSubscription
    ) -> tuple[Member, PendingGroup]:
        revision = PendingGroup(self.group, self.draft, self.context.image)
        before = self._member(revision, member_id)
        profile = self._profile(before.profile, subscription)
        revision.put(replace(before, profile=profile))
        changed = (profile.topics, None) != (before.profile.topics, before.profile.pattern)
        revision.resolve({})
        owned = from_names(self.context.image, subscription.owned)
        limits = self.context.limits
        return settle(revision, member_id, Settling(owned, limits), changed=changed), revision

    def _member(self, revision: PendingGroup, member_id: str) -> Member:
        group, request = self.group, self.request
        holder = group.static_member(request.instance_id)
        if request.instance_id is None or holder is None:
            if request.instance_id is not None and request.member_id:
                group.require_member(request.member_id, request.instance_id)  # refuses
            return group.members.get(member_id) or Member(member_id)
        if request.member_id:
            return group.require_member(request.member_id, request.instance_id)
        standing = holder.standing._replace(epoch=JOINS, previous_epoch=JOINS)
        member = Member(member_id, holder.profile, standing)
        revision.rename(holder, member)
        return member

    def _profile(self, now: MemberProfile, subscription: ClassicSubscription) -> MemberProfile:
        request = self.request
        return MemberProfile(
            request.instance_id,
            now.rack_id if subscription.rack_id is None else subscription.rack_id,
            request.client_id,
            request.client_host,
            tuple(sorted(set(subscription.topics))),
            None,
            request.rebalance_timeout_ms,
            now.assignor,
            ClassicProtocolState(request.session_timeout_ms, request.protocols),
        )


def supports(group: ConsumerGroup, request: JoinRequest) -> bool:
    """Whether the member has a protocol that every classic member supports."""
    classic = group.classic_members()
    supporters = Counter(
        name for member in classic if member.classic for name, _ in member.classic.protocols
    )
    return any(supporters[protocol.name] == len(classic) for protocol in request.protocols)


def sync(
    group: ConsumerGroup, request: SyncRequest, draft: Draft, context: GroupContext
) -> SyncReply:
    """The reply with the member's current assignment."""
    member, classic = _classic(
        group, MemberIdentity(request.member_id, request.instance_id), request.generation
    )
    differs = request.protocol_type not in (None, CONSUMER)
    if differs or request.protocol not in (None, classic.protocols[0].name):
        raise KafkaError(ErrorCode.inconsistent_group_protocol)
    if group.epoch > member.epoch and member.standing.state is not MemberState.UNREVOKED:
        await_rejoin(group, member, draft)
        raise KafkaError(ErrorCode.rebalance_in_progress)
    draft.cancel(TimerKey(SYNC, group.id, member.id))
    restart_session(group, member, draft, context.limits)
    assignment = assignment_of(member, member.standing.assigned, context.image)
    return SyncReply(ErrorCode.none, assignment, request.protocol_type, request.protocol)


def assignment_of(member: Member, parts: Parts | None, image: Image) -> bytes:
    """A classic member's assignment, encoded for its own protocol."""
    assert member.classic is not None, f"member {member.id} does not use the classic protocol"
    subscription = read_subscription(member.classic.protocols[0].metadata)
    version = 0 if subscription is None else subscription.version
    return write_assignment(by_name(image, parts or NO_PARTS), version)


def heartbeat(
    group: ConsumerGroup,
    identity: MemberIdentity,
    generation: int,
    draft: Draft,
    context: GroupContext,
) -> ErrorCode:
    """REBALANCE_IN_PROGRESS if it has to rejoin: for a new epoch, to revoke, or to get the rest."""
    member, _ = _classic(group, identity, generation)
    restart_session(group, member, draft, context.limits)
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
    group: ConsumerGroup, leavers: Iterable[MemberIdentity], draft: Draft, context: GroupContext
) -> list[ErrorCode]:
    """One error code for each; an operator may remove members of either protocol."""
    removed: dict[str, Member] = {}
    codes = []
    for leaver in leavers:
        member_id = leaver.member_id or group.static.get(leaver.instance_id or "", "")
        try:
            member = group.require_member(member_id, leaver.instance_id)
        except KafkaError as refusal:
            codes.append(refusal.code)
            continue
        removed[member.id] = member
        codes.append(ErrorCode.none)
    if removed:
        rebalance_after_leave(
            remove_member(group, removed.values(), draft, context.image, "left the group")
        )
    return codes


def _classic(
    group: ConsumerGroup, identity: MemberIdentity, generation: int | None = None
) -> tuple[Member, ClassicProtocolState]:
    """The member with these ids, if it uses the classic protocol; KafkaError otherwise."""
    member = group.require_member(identity.member_id, identity.instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.unknown_member_id)
    if generation is not None and generation != member.epoch:
        raise KafkaError(ErrorCode.illegal_generation)
    return member, member.classic
