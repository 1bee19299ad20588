"""One group of the consumer protocol.

Owns the members, the target assignment, the epochs and the owners of partitions. `apply` is the
only writer of persisted state, for live requests and while loading; the attributes that are lost
with the process are marked.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, TypeAlias, TypeVar, assert_never

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.consumer.member import (
    NAME_BYTES,
    Member,
    MemberAssignment,
    MemberProfile,
    profile_bytes,
)
from ottla.coordinator.group.consumer.records import (
    ConsumerGroupChange,
    EpochSet,
    PatternSet,
    ProfileSet,
    Resolved,
    StandingSet,
    TargetEpochSet,
    TargetSet,
    TopicsSet,
)
from ottla.coordinator.group.consumer.topic_partitions import (
    NO_PARTS,
    Parts,
    TopicIdPartition,
    TopicSize,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError

V = TypeVar("V")

PART_BYTES: Final = 200
"""Memory counted for a partition that a member has, or is to have."""
TOPIC_BYTES: Final = 200


class GroupState(Enum):
    """By the names that Kafka's clients and tools show. Always computed, never stored."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    __slots__ = (
        "changes",
        "epoch",
        "id",
        "members",
        "memory_bytes",
        "owners",
        "patterns",
        "patterns_asked_ms",
        "patterns_of",
        "rejoining",
        "static",
        "target",
        "target_epoch",
        "topics",
        "topics_changed",
    )

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = 0
        self.target_epoch = 0
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        self.target: dict[str, Parts] = {}
        self.topics: dict[str, TopicSize] = {}
        """The subscribed topics, as of the target assignment."""
        self.patterns: dict[str, Resolved] = {}
        self.owners: dict[TopicIdPartition, str] = {}
        """The member that owns a partition, or has not confirmed its revocation yet."""
        # Not persisted:
        self.changes = 0
        """How many records have been applied."""
        self.memory_bytes = 0
        """Memory counted for the members and what is assigned to them."""
        self.topics_changed = True
        """The subscribed topics may differ from `topics`."""
        self.patterns_of = -1
        """The number of topic changes for which the patterns were resolved."""
        self.patterns_asked_ms = WallMs(0)
        self.rejoining: set[str] = set()
        """Classic members that were told to rejoin."""

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        settled = all(member.has_settled(self.target_epoch) for member in self.members.values())
        return GroupState.STABLE if settled else GroupState.RECONCILING

    # Members

    def require_member(self, member_id: str, instance_id: str | None = None) -> Member:
        """The member with these ids; KafkaError if there is none or it is fenced."""
        if instance_id is not None:
            holder = self.static.get(instance_id)
            if holder is None:
                raise KafkaError(
                    ErrorCode.unknown_member_id, f"Instance id {instance_id} is unknown."
                )
            if holder != member_id:
                raise KafkaError(
                    ErrorCode.fenced_instance_id,
                    f"Static member {member_id} with instance id {instance_id} was fenced by "
                    f"member {holder}.",
                )
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.unknown_member_id,
                f"Member {member_id} is not a member of group {self.id}.",
            )
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        return None if instance_id is None else self.members.get(self.static.get(instance_id, ""))

    def classic_members(self) -> list[Member]:
        return [member for member in self.members.values() if member.classic is not None]

    def preferred_assignor(self) -> str | None:
        """The assignor that most members request."""
        preferences = Counter(
            member.profile.assignor
            for member in self.members.values()
            if member.profile.assignor is not None
        )
        return preferences.most_common(1)[0][0] if preferences else None

    # Subscriptions

    def topics_of(self, member: Member) -> frozenset[str]:
        """The member's subscription, by name and by pattern."""
        topics = frozenset(member.profile.topics)
        resolved = self.patterns.get(member.profile.pattern or "")
        return topics if resolved is None else topics.union(resolved.topics)

    def subscribed(self) -> frozenset[str]:
        members = self.members.values()
        return frozenset[str]().union(*(self.topics_of(member) for member in members))

    def patterns_in_use(self) -> frozenset[str]:
        patterns = (member.profile.pattern for member in self.members.values())
        return frozenset(pattern for pattern in patterns if pattern)

    def is_free(self, part: TopicIdPartition, member_id: str) -> bool:
        """Whether no other member owns it."""
        return self.owners.get(part, member_id) == member_id

    # Records

    def copy(self) -> ConsumerGroup:
        twin = ConsumerGroup(self.id)
        twin.epoch, twin.target_epoch = self.epoch, self.target_epoch
        twin.members, twin.static = dict(self.members), dict(self.static)
        twin.target, twin.topics = dict(self.target), dict(self.topics)
        twin.patterns, twin.owners = dict(self.patterns), dict(self.owners)
        return twin

    def snapshot(self) -> ConsumerGroup:
        """A copy with what is not persisted, too."""
        twin = self.copy()
        twin.changes, twin.memory_bytes = self.changes, self.memory_bytes
        twin.topics_changed, twin.patterns_of = self.topics_changed, self.patterns_of
        twin.patterns_asked_ms, twin.rejoining = self.patterns_asked_ms, set(self.rejoining)
        return twin

    def apply(self, change: ConsumerGroupChange) -> None:
        self.changes += 1
        if isinstance(change, EpochSet):
            self.epoch = 0 if change.epoch is None else change.epoch
        elif isinstance(change, TargetEpochSet):
            self.target_epoch = -1 if change.epoch is None else change.epoch
        elif isinstance(change, TopicsSet):
            before = len(self.topics)
            self.topics = dict(change.topics or ())
            self.memory_bytes += TOPIC_BYTES * (len(self.topics) - before)
        elif isinstance(change, ProfileSet):
            self._set_profile(change.member, change.profile)
        elif isinstance(change, TargetSet):
            grows_by = len(change.parts or ()) - len(self.target.get(change.member, ()))
            self.memory_bytes += PART_BYTES * grows_by
            _put(self.target, change.member, change.parts)
        elif isinstance(change, StandingSet):
            self._set_standing(change.member, change.standing)
        elif isinstance(change, PatternSet):
            self.memory_bytes += _pattern_bytes(change.pattern, change.resolved)
            self.memory_bytes -= _pattern_bytes(change.pattern, self.patterns.get(change.pattern))
            _put(self.patterns, change.pattern, change.resolved)
        else:
            assert_never(change)

    def _set_profile(self, member_id: str, profile: MemberProfile | None) -> None:
        before = self.members.get(member_id)
        self.memory_bytes += 0 if profile is None else profile_bytes(profile)
        if before is not None:
            self.memory_bytes -= profile_bytes(before.profile)
            instance_id = before.profile.instance_id
            if instance_id is not None and self.static.get(instance_id) == member_id:
                del self.static[instance_id]
        if profile is None:
            self.members.pop(member_id, None)
            self.rejoining.discard(member_id)
            if before is not None:
                self._release(before)
            return
        standing = MemberAssignment() if before is None else before.standing
        self.members[member_id] = Member(member_id, profile, standing)
        if profile.instance_id is not None:
            self.static[profile.instance_id] = member_id

    def _set_standing(self, member_id: str, standing: MemberAssignment | None) -> None:
        before = self.members.get(member_id)
        if before is None and standing is None:
            return
        after = MemberAssignment(-1, -1) if standing is None else standing
        profile = MemberProfile() if before is None else before.profile
        self.memory_bytes += profile_bytes(profile) if before is None else 0
        self.members[member_id] = Member(member_id, profile, after)
        owned = after.assigned | after.revoking
        if before is not None:
            self._release(before, owned)
        self.memory_bytes += PART_BYTES * len(owned)
        self.owners.update(dict.fromkeys(owned, member_id))  # without hashing each again

    def _release(self, member: Member, keeps: Parts = NO_PARTS) -> None:
        owned = member.standing.assigned | member.standing.revoking
        self.memory_bytes -= PART_BYTES * len(owned)
        for part in owned - keeps:
            if self.owners.get(part) == member.id:
                del self.owners[part]


Group: TypeAlias = ClassicGroup | ConsumerGroup
"""Of either protocol."""


def _pattern_bytes(pattern: str, resolved: Resolved | None) -> int:
    if resolved is None:
        return 0
    return TOPIC_BYTES + len(pattern) + NAME_BYTES * len(resolved.topics)


def _put(into: dict[str, V], key: str, value: V | None) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value


def check_commit(
    group: ConsumerGroup, member_id: str, epoch: int, *, transactional: bool, knows_epochs: bool
) -> None:
    """KafkaError if the member may not commit."""
    if epoch < 0 and not group.members:
        return
    member = group.require_member(member_id)
    if member.classic is None and not knows_epochs and not transactional:
        raise KafkaError(
            ErrorCode.unsupported_version,
            "OffsetCommit version 9 or above must be used by members using the consumer protocol",
        )
    # A transactional producer only has generations.
    _check_epoch(member, epoch, says_generation=transactional)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    if member_id or epoch >= 0:
        _check_epoch(group.require_member(member_id or ""), epoch)


def _check_epoch(member: Member, epoch: int, *, says_generation: bool = False) -> None:
    if epoch == member.epoch:
        return
    if says_generation or member.classic is not None:
        raise KafkaError(ErrorCode.illegal_generation)
    raise KafkaError(
        ErrorCode.stale_member_epoch,
        f"The received member epoch {epoch} does not match the expected member epoch "
        f"{member.epoch}.",
    )
