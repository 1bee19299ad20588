"""A member of a group whose broker deals out the partitions (KIP-848).

Pure: heartbeat replies go in, the fields of the next heartbeat and what to do come out.
`modern_loop` sends them. The one request says everything: who the member is, what it wants, what
it has; and it says only what changed since the coordinator last heard it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.error_reactions import ErrorReaction, membership_reaction
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import Fields

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
"""How a heartbeat says that there is nothing new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProtocolTerms:
    """On which terms a member joins."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = 300_000
    assignor: str | None = None


class ConsumerProtocolMember:
    """One member: its epoch, what it was told to have, and what it has said."""

    def __init__(self, terms: ConsumerProtocolTerms) -> None:
        self.terms = terms
        self.member_id = terms.member_id
        self.epoch = JOIN_EPOCH
        self.lost = False
        self.interval_ms = 0
        self.target: Mapping[UUID, tuple[int, ...]] | None = None
        """What the coordinator wants this member to have; None: it has not said yet."""
        self._said: dict[str, object] = {}

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
        wanted: dict[str, object] = {
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
            told = {
                name: value if self._said.get(name) != value else UNCHANGED.get(name, value)
                for name, value in wanted.items()
            }
        else:
            told = dict(wanted)
        self._said = wanted
        return {
            "group_id": terms.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            **UNCHANGED,
            **told,
        }

    def on_heartbeat(self, reply: Any) -> ErrorReaction:
        """A heartbeat was answered."""
        code: ErrorCode = reply.error_code
        after = membership_reaction(code)
        if after is ErrorReaction.GO_ON:
            self.member_id = reply.member_id or self.member_id
            self.epoch = reply.member_epoch
            self.interval_ms = max(1, int(reply.heartbeat_interval.total_seconds() * 1_000))
            if reply.assignment is not None:
                self.target = {
                    each.topic_id: tuple(each.partitions)
                    for each in reply.assignment.topic_partitions
                }
                # The next heartbeat says what this member has, also if that is as before: it may
                # never have taken a partition that it now has to give up, and the coordinator
                # gives it to nobody else before it hears so.
                self._said.pop("topic_partitions", None)
        elif after in (ErrorReaction.JOIN_ANEW, ErrorReaction.GIVE_UP):
            self.forget()
        else:
            self.on_no_response()
        return after

    def on_no_response(self) -> None:
        """A heartbeat may not have arrived: say everything again."""
        self._said = {}

    def forget(self) -> None:
        """Fenced, or gone: what it had is lost; it joins anew under the same id."""
        if self.is_member:
            self.lost = True
        self.epoch = JOIN_EPOCH
        self.target = None
        self._said = {}

    def leave(self) -> Fields | None:
        """The fields of the last heartbeat; a static member says that it will be back."""
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
    """Partitions as the coordinator names them."""
    grouped = groupby(sorted(partitions), key=lambda at: at.topic)
    return {ids[topic]: tuple(at.partition for at in held) for topic, held in grouped}


def by_name(
    target: Mapping[UUID, Collection[int]], names: Mapping[UUID, str]
) -> tuple[frozenset[TopicPartition], frozenset[UUID]]:
    """Partitions as the user names them, and the topics whose names are not known yet."""
    found = frozenset(
        TopicPartition(names[topic], index)
        for topic, indexes in target.items()
        if topic in names
        for index in indexes
    )
    return found, frozenset(target.keys() - names.keys())
