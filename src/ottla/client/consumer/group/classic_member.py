"""A member of a classic group: its state, and how it joins, syncs, stays and leaves.

Pure: from responses to the fields of the next request and the next step. `classic_loop` sends them.
The group's leader computes the assignment here too.

    OUT -> JOINING -> SYNCING -> STABLE
     ^________|__________|__________|      an error, a rebalance, a leave
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ottla.client.consumer.assignors.assignor import Assignor, Protocols, Shares, Subscription
from ottla.client.consumer.assignors.choice import protocol_of
from ottla.client.consumer.group.error_reactions import ErrorReaction, membership_reaction
from ottla.client.consumer.group.subscription_codec import (
    UnreadableSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import Fields
from ottla.protocol.schema import KioMessage

CONSUMER: Final = "consumer"
NO_GENERATION: Final = -1


class MemberPhase(Enum):
    OUT = "out"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


MOVES: Final[Mapping[MemberPhase, frozenset[MemberPhase]]] = {
    MemberPhase.OUT: frozenset({MemberPhase.OUT, MemberPhase.JOINING}),
    MemberPhase.JOINING: frozenset({MemberPhase.SYNCING, MemberPhase.OUT}),
    MemberPhase.SYNCING: frozenset({MemberPhase.STABLE, MemberPhase.OUT}),
    MemberPhase.STABLE: frozenset({MemberPhase.OUT}),
}


class GroupMetadata(NamedTuple):
    """Identifies a group member, for a producer that commits its offsets in a transaction."""

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicTerms:
    """The settings with which a member joins."""

    group_id: str
    instance_id: str | None = None
    rack: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000


class ClassicMember:
    """One member, and the group's leader if it is elected."""

    def __init__(self, terms: ClassicTerms, assignors: Sequence[Assignor]) -> None:
        self.terms = terms
        self.phase = MemberPhase.OUT
        self.member_id = ""
        self.generation = NO_GENERATION
        self.lost = False
        """Other members may own its partitions already: too late to commit for them."""
        self.is_leader = False
        self.protocol = protocol_of(assignors)
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._chosen: str | None = None
        self._members: dict[str, Subscription] = {}

    @property
    def is_cooperative(self) -> bool:
        return self.protocol is Protocols.COOPERATIVE

    @property
    def metadata(self) -> GroupMetadata:
        terms = self.terms
        if self.lost:
            return GroupMetadata(terms.group_id, group_instance_id=terms.instance_id)
        return GroupMetadata(terms.group_id, self.generation, self.member_id, terms.instance_id)

    def join(
        self, topics: Collection[str], owned: Collection[TopicPartition], reason: str = ""
    ) -> Fields:
        """The fields of JoinGroup. An eager member has revoked everything by now."""
        self._set_phase(MemberPhase.OUT)
        self._set_phase(MemberPhase.JOINING)
        terms = self.terms
        return {
            "group_id": terms.group_id,
            "session_timeout": terms.session_timeout_ms,
            "rebalance_timeout": terms.rebalance_timeout_ms,
            "member_id": self.member_id,
            "group_instance_id": terms.instance_id,
            "protocol_type": CONSUMER,
            "protocols": [
                {"name": name, "metadata": self._subscription(assignor, topics, owned)}
                for name, assignor in self._assignors.items()
            ],
            "reason": reason[:255],
        }

    def on_joined(self, reply: KioMessage) -> ErrorReaction:
        """Handle the JoinGroup response."""
        reaction = membership_reaction(reply.error_code)
        if reaction is not ErrorReaction.GO_ON:
            if reply.error_code is ErrorCode.member_id_required:
                self.member_id = reply.member_id
            self.on_error(reaction)
            return reaction
        self._set_phase(MemberPhase.SYNCING)
        self.member_id = reply.member_id
        self.generation = reply.generation_id
        self._chosen = reply.protocol_name
        self.is_leader = reply.leader == reply.member_id and not reply.skip_assignment
        self._members = {}
        if self.is_leader:
            self._members = {
                member.member_id: _decoded_subscription(member.metadata, member.group_instance_id)
                for member in reply.members
            }
        return reaction

    @property
    def topics_of_all(self) -> frozenset[str]:
        """The topics of all members, of which the leader needs metadata."""
        return frozenset(
            topic for subscription in self._members.values() for topic in subscription.topics
        )

    def lead(self, partitions: Mapping[str, int]) -> Shares:
        """The partitions of every member, by the strategy the group has chosen."""
        assert self._chosen is not None
        assignor = self._assignors.get(self._chosen)
        if assignor is None:
            raise KafkaError(
                ErrorCode.inconsistent_group_protocol,
                f"the group chose the assignment strategy {self._chosen!r}, which this member "
                "does not support",
            )
        return assignor.assign(self._members, partitions)

    def sync(self, shares: Shares) -> Fields:
        """The fields of SyncGroup; only the leader sends an assignment."""
        return {
            **self._member_fields,
            "protocol_type": CONSUMER,
            "protocol_name": self._chosen,
            "assignments": [
                {"member_id": member, "assignment": encode_assignment(share)}
                for member, share in shares.items()
            ],
        }

    def on_synced(self, reply: KioMessage) -> tuple[ErrorReaction, tuple[TopicPartition, ...]]:
        """Handle the SyncGroup response: this member's partitions."""
        reaction = membership_reaction(reply.error_code)
        if reaction is not ErrorReaction.GO_ON:
            self.on_error(reaction)
            return reaction, ()
        try:
            share = decode_assignment(reply.assignment)
        except UnreadableSubscription as fault:
            self.on_error(ErrorReaction.GIVE_UP)
            raise KafkaError(ErrorCode.inconsistent_group_protocol, str(fault)) from None
        self._set_phase(MemberPhase.STABLE)
        self.lost = False
        assert self._chosen is not None
        self._assignors[self._chosen].on_assignment(share, self.generation)
        return reaction, share

    def heartbeat(self) -> Fields:
        return self._member_fields

    def on_heartbeat(self, code: ErrorCode) -> ErrorReaction:
        """Handle a Heartbeat response. A member that must rejoin does so at its next poll."""
        reaction = membership_reaction(code)
        if reaction in (ErrorReaction.JOIN_ANEW, ErrorReaction.GIVE_UP):
            self.on_error(reaction)
        return reaction

    def on_error(self, reaction: ErrorReaction) -> None:
        """The member is not, or no longer, in the group."""
        if reaction in (ErrorReaction.JOIN_ANEW, ErrorReaction.GIVE_UP):
            self.forget()
        self._set_phase(MemberPhase.OUT)

    def forget(self) -> None:
        """Drop the member id and generation."""
        if self.generation != NO_GENERATION:
            self.lost = True
        self.member_id = ""
        self.generation = NO_GENERATION
        self.phase = MemberPhase.OUT

    def leave(self, reason: str) -> Fields | None:
        """The fields of LeaveGroup; None if the member sends none.

        A static member is expected to return: it keeps its partitions until its session expires.
        """
        member_id, terms = self.member_id, self.terms
        self.forget()
        if not member_id or terms.instance_id is not None:
            return None
        member = {"member_id": member_id, "group_instance_id": None, "reason": reason[:255]}
        return {"group_id": terms.group_id, "member_id": member_id, "members": [member]}

    @property
    def _member_fields(self) -> dict[str, object]:
        return {
            "group_id": self.terms.group_id,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.terms.instance_id,
        }

    def _subscription(
        self, assignor: Assignor, topics: Collection[str], owned: Collection[TopicPartition]
    ) -> bytes:
        subscription = Subscription(
            topics=tuple(topics),
            user_data=assignor.user_data(topics),
            owned=tuple(owned),
            generation=self.generation,
            rack=self.terms.rack,
        )
        return encode_subscription(subscription)

    def _set_phase(self, to: MemberPhase) -> None:
        if to is self.phase is MemberPhase.OUT:
            return
        assert to in MOVES[self.phase], f"{self.phase.name} -> {to.name}"
        self.phase = to


def _decoded_subscription(metadata: bytes, instance_id: str | None) -> Subscription:
    """A member's subscription; empty if it cannot be decoded, so that others are not affected."""
    try:
        return decode_subscription(metadata, instance_id)
    except UnreadableSubscription:
        return Subscription((), instance_id=instance_id)
