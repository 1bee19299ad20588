"""Everything that can happen to the active controller.

Owns the shapes. `...Seen` came from the store, `...Asked` from somebody who waits for the answer
under the number `ask`, `...Answered` from a broker the controller wrote to, and `...Due` from a
timer. An event carries what was read, so that deciding needs no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.controller.placement import NOT_ROLLED, PlacementRandomness
from ottla.controller.state import BrokerState, Leadership, Replicas, TopicAssignment, TopicRules
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    TopicId,
    TopicPartition,
)

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})

Moves: TypeAlias = Mapping[TopicPartition, Replicas | None]
"""Where partitions shall go; None calls a running move off."""


class Elected(NamedTuple):
    """This broker's controller is now the active one, and this is what the store holds."""

    epoch: ControllerEpoch
    epoch_version: int
    brokers: Mapping[BrokerId, BrokerState]
    topics: Mapping[str, TopicAssignment]
    deletions: frozenset[str] = frozenset()
    unclean: Mapping[str, bool] = NOTHING
    notifications: tuple[str, ...] = ()
    """Nodes left by ISR and log-directory changes: read anew with everything else, so removed."""
    ids: Mapping[str, TopicId] = NOTHING
    """For topics that were written without one, as old releases did."""
    returned: bool = False
    """This broker has just started, and no controller was there to see it come: what it led before
    it may have lost in part."""


class LiveBrokersChanged(NamedTuple):
    brokers: Mapping[BrokerId, BrokerState]


class BrokerBehind(NamedTuple):
    """So much was waiting for a broker that it was dropped: it must hear everything again."""

    broker: BrokerId


class TopicsReloaded(NamedTuple):
    names: frozenset[str]
    new: Mapping[str, TopicAssignment]
    ids: Mapping[str, TopicId] = NOTHING
    """For topics that were written without one, as old tools do."""


class PartitionsReloaded(NamedTuple):
    """A topic's node changed: somebody wrote another assignment."""

    name: str
    topic: TopicAssignment


class DeletionsFound(NamedTuple):
    names: frozenset[str]


class StatesChanged(NamedTuple):
    """Leaders changed their ISR and left a notification."""

    states: Mapping[TopicPartition, Leadership]
    notifications: tuple[str, ...]


class StatesReloaded(NamedTuple):
    """A write of ours met another version: this is what is there."""

    states: Mapping[TopicPartition, Leadership]


class LogDirFailuresFound(NamedTuple):
    """These brokers lost a log directory; which replicas were on it, only they know."""

    brokers: frozenset[BrokerId]
    notifications: tuple[str, ...]


class UncleanElectionEnabled(NamedTuple):
    """`unclean.leader.election.enable` changed for one topic; None follows the broker's."""

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
    """Only about replicas that were to be deleted."""

    broker: BrokerId
    epoch: BrokerEpoch
    codes: Mapping[TopicPartition, ErrorCode]


class NewTopic(NamedTuple):
    """A topic as asked for: -1 stands for the default; an assignment excludes both numbers.

    Its id and the throws of the dice are filled in before it becomes an event.
    """

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, Replicas] = NOTHING
    config: Mapping[str, str] = NOTHING
    id: TopicId = NO_TOPIC_ID
    roll: PlacementRandomness = NOT_ROLLED


class TopicCreationRequested(NamedTuple):
    """Part of a request, or all of it. `budget` is how many partitions it may still make, as many
    as one request may if not said."""

    ask: int
    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    budget: int | None = None


class MorePartitions(NamedTuple):
    name: str
    total: int
    assignment: tuple[Replicas, ...] | None = None


class PartitionCreationRequested(NamedTuple):
    """As `TopicCreationRequested`."""

    ask: int
    topics: tuple[MorePartitions, ...]
    validate_only: bool = False
    budget: int | None = None


class DeletionRequested(NamedTuple):
    """One `ask` per topic, because each ends at its own time."""

    asks: Mapping[str, int]


class ElectionKind(Enum):
    PREFERRED = 0
    UNCLEAN = 1


class ElectionRequested(NamedTuple):
    """Every partition when none is named. `ask` is None when a node in the store asked."""

    ask: int | None
    kind: ElectionKind
    partitions: tuple[TopicPartition, ...] | None = None


class BalanceDue(NamedTuple):
    """Time to see whether leaders have drifted from their preferred brokers."""


class ShutdownRequested(NamedTuple):
    ask: int
    broker: BrokerId
    epoch: BrokerEpoch


class ReassignmentRequested(NamedTuple):
    """Reassignment, by request or by the node in the store."""

    ask: int | None
    moves: Moves
    keep_factor: bool = False


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
    | ShutdownRequested
    | ReassignmentRequested
)
