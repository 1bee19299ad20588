"""Everything that can happen to the active controller.

Owns the types. `...Changed`, `...Found` and `...Reloaded` were read from the store, `...Requested`
carries the id of a pending request (`request_id`), `...Replied` is the reply of a broker, and
`...Due` comes from a timer. An event carries everything that was read: deciding needs no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.controller.placement import NO_RANDOMNESS, PlacementRandomness
from ottla.controller.state import BrokerState, Leadership, Replicas, TopicAssignment, TopicRules
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)
from ottla.store.nodes import LogDirsNode

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})

Moves: TypeAlias = Mapping[TopicPartition, Replicas | None]
"""Target replicas by partition; None cancels a running reassignment."""


class Elected(NamedTuple):
    """This broker became the active controller; carries the content of the store."""

    epoch: ControllerEpoch
    epoch_version: int
    brokers: Mapping[BrokerId, BrokerState]
    topics: Mapping[str, TopicAssignment]
    deletions: frozenset[str] = frozenset()
    unclean: Mapping[str, bool] = NOTHING
    notifications: tuple[str, ...] = ()
    """Nodes of ISR and log directory changes: no longer needed after reading everything."""
    ids: Mapping[str, TopicId] = NOTHING
    """New ids for topics that were written without one, by old releases."""
    restarted: bool = False
    """This broker has just started, and no controller noticed: it may have lost records of the
    partitions that it leads."""
    lost_disks: Mapping[BrokerId, LogDirsNode] = NOTHING
    """Brokers that lost log directories, with those that they have now."""


class LiveBrokersChanged(NamedTuple):
    brokers: Mapping[BrokerId, BrokerState]
    lost_disks: Mapping[BrokerId, LogDirsNode] = NOTHING


class BrokerBehind(NamedTuple):
    """The request queue of a broker overflowed and was dropped: send it everything again."""

    broker: BrokerId


class TopicsReloaded(NamedTuple):
    names: frozenset[str]
    new: Mapping[str, TopicAssignment]
    ids: Mapping[str, TopicId] = NOTHING
    """New ids for topics that were written without one, by old tools."""


class PartitionsReloaded(NamedTuple):
    """A topic's node changed: it has another assignment."""

    name: str
    topic: TopicAssignment


class DeletionsFound(NamedTuple):
    names: frozenset[str]


class StatesChanged(NamedTuple):
    """Leaders changed their ISR and wrote a notification."""

    states: Mapping[TopicPartition, Leadership]
    notifications: tuple[str, ...]


class StatesReloaded(NamedTuple):
    """A write of ours had a version conflict: the states as they are now."""

    states: Mapping[TopicPartition, Leadership]


class LogDirFailuresFound(NamedTuple):
    """Log directories of these brokers failed; only they know which replicas are affected."""

    brokers: frozenset[BrokerId]
    notifications: tuple[str, ...]


class UncleanElectionEnabled(NamedTuple):
    """`unclean.leader.election.enable` changed for one topic; None: the broker's applies."""

    topic: str
    allowed: bool | None


class RulesChanged(NamedTuple):
    """Settings of the broker changed while it runs."""

    rules: TopicRules


class LeaderAndIsrReplied(NamedTuple):
    broker: BrokerId
    epoch: BrokerEpoch
    codes: Mapping[TopicPartition, ErrorCode]


class StopReplicaReplied(NamedTuple):
    """Only for replicas to be deleted."""

    broker: BrokerId
    epoch: BrokerEpoch
    codes: Mapping[TopicPartition, ErrorCode]


class NewTopic(NamedTuple):
    """A requested topic: -1 stands for the default; an assignment excludes both numbers.

    The id and the random numbers are filled in before it becomes part of an event.
    """

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, Replicas] = NOTHING
    config: Mapping[str, str] = NOTHING
    id: TopicId = NO_TOPIC_ID
    randomness: PlacementRandomness = NO_RANDOMNESS


class TopicCreationRequested(NamedTuple):
    """A request, or a part of one. `budget`: how many partitions it may still create; None: the
    limit of a whole request."""

    request_id: int
    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    budget: int | None = None


class MorePartitions(NamedTuple):
    name: str
    total: int
    assignment: tuple[Replicas, ...] | None = None


class PartitionCreationRequested(NamedTuple):
    """As `TopicCreationRequested`."""

    request_id: int
    topics: tuple[MorePartitions, ...]
    validate_only: bool = False
    budget: int | None = None


class DeletionRequested(NamedTuple):
    """One request id per topic, because each deletion completes at its own time."""

    request_ids: Mapping[str, int]


class ElectionKind(Enum):
    PREFERRED = 0
    UNCLEAN = 1


class ElectionRequested(NamedTuple):
    """All partitions if none is named. `request_id` is None for a request from the store."""

    request_id: int | None
    kind: ElectionKind
    partitions: tuple[TopicPartition, ...] | None = None


class BalanceDue(NamedTuple):
    """Time to check how many partitions are not led by their preferred replica."""


class IsrMember(NamedTuple):
    """A broker, with the epoch under which it fetched; None if the leader does not know it."""

    broker: BrokerId
    epoch: BrokerEpoch | None = None


class IsrProposal(NamedTuple):
    """The in-sync set that a leader wants, and the state it knows."""

    isr: tuple[IsrMember, ...]
    leader_epoch: LeaderEpoch
    version: int
    """Of the partition's state node: `partition_epoch` in requests."""


class IsrChangeRequested(NamedTuple):
    """AlterPartition. The reply has the new leadership or the refusal of each partition."""

    request_id: int
    broker: BrokerId
    epoch: BrokerEpoch
    proposals: Mapping[tuple[TopicId, int], IsrProposal]
    """By topic id and partition number."""


class ShutdownRequested(NamedTuple):
    request_id: int
    broker: BrokerId
    epoch: BrokerEpoch


class ReassignmentRequested(NamedTuple):
    """Reassignment, by request or by the node in the store."""

    request_id: int | None
    moves: Moves
    keep_factor: bool = False
    """Refuse a change of the replication factor."""


Event: TypeAlias = (
    Elected
    | LiveBrokersChanged
    | BrokerBehind
    | TopicsReloaded
    | PartitionsReloaded
    | DeletionsFound
    | StatesChanged
    | StatesReloaded
    | LogDirFailuresFound
    | UncleanElectionEnabled
    | RulesChanged
    | LeaderAndIsrReplied
    | StopReplicaReplied
    | TopicCreationRequested
    | PartitionCreationRequested
    | DeletionRequested
    | ElectionRequested
    | BalanceDue
    | IsrChangeRequested
    | ShutdownRequested
    | ReassignmentRequested
)


def request_ids(event: object) -> tuple[int, ...]:
    """The requests that wait for the outcome of this event."""
    match event:
        case DeletionRequested():
            return tuple(event.request_ids.values())
        case (
            TopicCreationRequested()
            | PartitionCreationRequested()
            | ElectionRequested()
            | IsrChangeRequested()
            | ShutdownRequested()
            | ReassignmentRequested()
        ):
            return () if event.request_id is None else (event.request_id,)
    return ()
