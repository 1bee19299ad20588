"""A member of a consumer-protocol group, where the broker assigns partitions (KIP-848).

Pure: from heartbeat responses to the fields of the next heartbeat and the next step.
`consumer_loop` sends them. One request carries everything: the member, its subscription, its
partitions; and only what changed since the last one the coordinator received.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from uuid import UUID

from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.error_reactions import ErrorReaction, membership_reaction
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import Fields
from ottla.protocol.schema import KioMessage

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2

UNCHANGED: Final[Mapping[str, object]] = {
    "rack_id": None,
    "rebalance_timeout": -1,
    "subscribed_topic_names": None,
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "topic_partitions": None,
}
"""The values that mean "unchanged" in a heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProtocolTerms:
    """The settings with which a member joins."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = 300_000
    assignor: str | None = None


class ConsumerProtocolMember:
    """One member: its epoch, its target assignment, and what it has sent."""

    def __init__(self, terms: ConsumerProtocolTerms) -> None:
        self.terms = terms
        self.member_id = terms.member_id
        self.epoch = JOIN_EPOCH
        self.lost = False
        self.interval_ms = 0
        self.target: Mapping[UUID, tuple[int, ...]] | None = None
        """The target assignment from the coordinator; None before the first one."""
        self._sent_fields: dict[str, object] = {}

    @property
    def is_member(self) -> bool:
        return self.epoch > JOIN_EPOCH

    @property
    def metadata(self) -> GroupMetadata:
        terms = self.terms
        return GroupMetadata(terms.group_id, self.epoch, self.member_id, terms.instance_id)

    def heartbeat(self, topics: Collection[str], owned: Mapping[UUID, Collection[int]]) -> Fields:
        """The fields of ConsumerGroupHeartbeat: all of them to join, else those that changed."""
        terms = self.terms
        current: dict[str, object] = {
            "instance_id": terms.instance_id,
            "rack_id": terms.rack,
            "rebalance_timeout": terms.rebalance_timeout_ms,
            "subscribed_topic_names": sorted(topics),
            "server_assignor": terms.assignor,
            "topic_partitions": [
                {"topic_id": topic, "partitions": sorted(indexes)}
                for topic, indexes in sorted(owned.items())
            ],
        }
        if self.is_member:
            fields = {
                name: value if self._sent_fields.get(name) != value else UNCHANGED.get(name, value)
                for name, value in current.items()
            }
        else:
            fields = dict(current)
        self._sent_fields = current
        return {
            "group_id": terms.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            **UNCHANGED,
            **fields,
        }

    def on_heartbeat(self, reply: KioMessage) -> ErrorReaction:
        """Handle a heartbeat response."""
        code: ErrorCode = reply.error_code
        reaction = membership_reaction(code)
        if reaction is ErrorReaction.GO_ON:
            self.member_id = reply.member_id or self.member_id
            self.epoch = reply.member_epoch
            self.interval_ms = max(1, int(reply.heartbeat_interval.total_seconds() * 1_000))
            if reply.assignment is not None:
                self.target = {
                    topic.topic_id: tuple(topic.partitions)
                    for topic in reply.assignment.topic_partitions
                }
                # The next heartbeat lists this member's partitions even if they are unchanged: it
                # may never have taken a partition that it now has to revoke, and the coordinator
                # assigns it to no other member before it is told so.
                self._sent_fields.pop("topic_partitions", None)
        elif reaction in (ErrorReaction.JOIN_ANEW, ErrorReaction.GIVE_UP):
            self.forget()
        else:
            self.on_no_response()
        return reaction

    def on_no_response(self) -> None:
        """A heartbeat may not have arrived: send all fields again."""
        self._sent_fields = {}

    def forget(self) -> None:
        """Fenced, or left: its partitions are lost; it joins again under the same id."""
        if self.is_member:
            self.lost = True
        self.epoch = JOIN_EPOCH
        self.target = None
        self._sent_fields = {}

    def leave(self) -> Fields | None:
        """The fields of the last heartbeat; a static member announces that it will return."""
        if not self.is_member:
            return None
        epoch = LEAVE_EPOCH if self.terms.instance_id is None else STATIC_LEAVE_EPOCH
        self.forget()
        return {
            "group_id": self.terms.group_id,
            "member_id": self.member_id,
            "member_epoch": epoch,
            **UNCHANGED,
            "instance_id": self.terms.instance_id,
        }


def by_topic_id(
    partitions: Iterable[TopicPartition], ids: Mapping[str, UUID]
) -> dict[UUID, tuple[int, ...]]:
    """Partition indexes by topic id."""
    grouped = groupby(sorted(partitions), key=lambda tp: tp.topic)
    return {ids[topic]: tuple(tp.partition for tp in group) for topic, group in grouped}


def by_name(
    target: Mapping[UUID, Collection[int]], names: Mapping[UUID, str]
) -> tuple[frozenset[TopicPartition], frozenset[UUID]]:
    """Partitions by topic name, and the topic ids whose names are not known yet."""
    partitions = frozenset(
        TopicPartition(names[topic], index)
        for topic, indexes in target.items()
        if topic in names
        for index in indexes
    )
    return partitions, frozenset(target.keys() - names.keys())
