"""One group of the classic protocol.

Owns the members, their protocol votes, the leader and the generation. Reads no clock and writes
nothing: requests are decided in `join`, `sync`, `heartbeat` and `rebalance`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ottla.coordinator.group.classic.member import (
    CAN_REBALANCE,
    MOVES,
    ClassicMember,
    GroupPhase,
    JoinedMember,
    JoinReply,
    Protocol,
)
from ottla.coordinator.group.memory import MEMBER_BYTES, size_of
from ottla.coordinator.record_fields import Reader
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError

CONSUMER: Final = "consumer"
UNKNOWN_MS: Final = WallMs(-1)


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of one member's subscription; None if it is malformed."""
    try:
        reader = Reader(metadata)
        return frozenset(reader.text() for _ in range(reader.array()))
    except ValueError:
        return None


class ClassicGroup:
    """A group that has members or offsets."""

    __slots__ = (
        "_names_and_metadata_bytes",
        "_votes",
        "assignment_bytes",
        "generation",
        "id",
        "initial_wait_left_ms",
        "is_initial",
        "leader",
        "members",
        "new_member_added",
        "pending",
        "phase",
        "protocol",
        "protocol_type",
        "since_ms",
        "static",
        "subscribed",
        "unsynced",
    )

    def __init__(self, group_id: str, since_ms: WallMs = UNKNOWN_MS) -> None:
        self.id = group_id
        self.phase = GroupPhase.EMPTY
        self.since_ms = since_ms
        """When it entered its phase; -1 if unknown."""
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.generation = 0
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static: dict[str, str] = {}
        self.pending: set[str] = set()
        """Ids assigned to members that have to join again with them."""
        self.unsynced: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.subscribed: frozenset[str] | None = None
        """Topics that members are subscribed to; None if unknown."""
        self.is_initial = False
        self.initial_wait_left_ms = 0
        self.new_member_added = False
        self._votes: Counter[str] = Counter()
        self.assignment_bytes = 0  # as last stored
        self._names_and_metadata_bytes = 0

    @property
    def memory_bytes(self) -> int:
        """Memory of its members, including pending ones."""
        count = len(self.members) + len(self.pending)
        return self._names_and_metadata_bytes + self.assignment_bytes + MEMBER_BYTES * count

    def move(self, to: GroupPhase, now: WallMs) -> None:
        assert to in MOVES[self.phase], f"group {self.id}: {self.phase.value} -> {to.value}"
        self.phase = to
        self.since_ms = now

    @property
    def can_rebalance(self) -> bool:
        return self.phase in CAN_REBALANCE

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER

    # Members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._count(member, 1)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        self._stop_expecting(member.id)

    def expect(self, member_id: str) -> None:
        """This id was assigned to a member that has to join again with it."""
        self.pending.add(member_id)
        self._names_and_metadata_bytes += len(member_id)

    def _stop_expecting(self, member_id: str) -> None:
        if member_id in self.pending:
            self.pending.remove(member_id)
            self._names_and_metadata_bytes -= len(member_id)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Remove a member or a pending id; the first remaining member leads if the leader left."""
        self._stop_expecting(member_id)
        self.unsynced.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member, -1)
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def change_protocols(self, member: ClassicMember, protocols: tuple[Protocol, ...]) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def rename(self, instance_id: str, new_id: str) -> ClassicMember:
        """A static member rejoined, or was replaced: it has a new member id."""
        old_id = self.static[instance_id]
        member = self.members.pop(old_id)
        member.id = new_id
        self.members[new_id] = member
        self.static[instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self.unsynced:
            self.unsynced.remove(old_id)
            self.unsynced.add(new_id)
        return member

    def require_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member with these ids; KafkaError if there is none or it is fenced."""
        if instance_id is not None:
            holder = self.static.get(instance_id)
            if holder is None:
                raise KafkaError(ErrorCode.unknown_member_id)
            if holder != member_id:
                raise KafkaError(ErrorCode.fenced_instance_id)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.unknown_member_id)
        return member

    @property
    def awaiting_join(self) -> int:
        return sum(member.awaits_join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(
            member.awaits_join is not None for member in self.members.values()
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Protocols

    def supports(self, protocol_type: str, protocols: Iterable[Protocol]) -> bool:
        """Whether a member with these protocols can join the group."""
        names = [protocol.name for protocol in protocols]
        if not protocol_type or not names:
            return False
        if not self.members:
            return True
        candidates = self._candidates()
        return protocol_type == self.protocol_type and any(name in candidates for name in names)

    def choose_protocol(self) -> str:
        """Of the protocols that all members support, the one most members prefer."""
        assert self.members, f"group {self.id}: no members to choose a protocol"
        candidates = self._candidates()
        ballot = Counter(member.vote(candidates) for member in self.members.values())
        return ballot.most_common(1)[0][0]

    def note_subscriptions(self) -> None:
        """Update `subscribed` from the members' metadata."""
        self.subscribed = self._subscriptions()

    def _subscriptions(self) -> frozenset[str] | None:
        if not self.is_consumer_group or self.protocol is None:
            return None
        subscribed: set[str] = set()
        for member in self.members.values():
            topics = subscribed_topics(member.metadata_for(self.protocol))
            if topics is None:
                return None
            subscribed |= topics
        return frozenset(subscribed)

    def _candidates(self) -> frozenset[str]:
        total = len(self.members)
        return frozenset(name for name, count in self._votes.items() if count == total)

    def _count(self, member: ClassicMember, step: int) -> None:
        self._names_and_metadata_bytes += step * (len(member.client_id) + size_of(member.protocols))
        for name in {protocol.name for protocol in member.protocols}:
            self._votes[name] += step
            if not self._votes[name]:
                del self._votes[name]

    # Replies

    def join_reply(self, member: ClassicMember, *, with_members: bool) -> JoinReply:
        return JoinReply(
            member_id=member.id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=self.joiners() if with_members else (),
        )

    def joiners(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(member.id, member.instance_id, member.metadata_for(self.protocol))
            for member in self.members.values()
        )
