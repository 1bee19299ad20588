"""Everything that can happen to the active controller.

Owns the shapes. `...Seen` came from the store, `...Asked` from somebody who waits for the answer
under the number `ask`, `...Answered` from a broker the controller wrote to, and `...Due` from a
timer. An event carries what was read, so that deciding needs no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from ottla.controller.placement import NOT_ROLLED, Roll
from ottla.controller.state import Broker, Leadership, Replicas, Rules, Topic
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    TopicId,
    TopicPartition,
)

Moves: TypeAlias = Mapping[TopicPartition, Replicas | None]
"""Where partitions shall go; None calls a running move off."""


@dataclass(frozen=True, slots=True)
class Elected:
    """This broker's controller is now the active one, and this is what the store holds."""

    epoch: ControllerEpoch
    epoch_version: int
    brokers: Mapping[BrokerId, Broker]
    topics: Mapping[str, Topic]
    deletions: frozenset[str] = frozenset()
    unclean: Mapping[str, bool] = field(default_factory=dict)
    notifications: tuple[str, ...] = ()
    """Nodes left by ISR and log-directory changes: read anew with everything else, so removed."""
    ids: Mapping[str, TopicId] = field(default_factory=dict)
    """For topics that were written without one, as old releases did."""
    returned: bool = False
    """This broker has just started, and no controller was there to see it come: what it led before
    it may have lost in part."""


@dataclass(frozen=True, slots=True)
class BrokersSeen:
    brokers: Mapping[BrokerId, Broker]


@dataclass(frozen=True, slots=True)
class BrokerBehind:
    """So much was waiting for a broker that it was dropped: it must hear everything again."""

    broker: BrokerId


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    names: frozenset[str]
    new: Mapping[str, Topic]
    ids: Mapping[str, TopicId] = field(default_factory=dict)
    """For topics that were written without one, as old tools do."""


@dataclass(frozen=True, slots=True)
class PartitionsSeen:
    """A topic's node changed: somebody wrote another assignment."""

    name: str
    topic: Topic


@dataclass(frozen=True, slots=True)
class DeletionsSeen:
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class StatesSeen:
    """Leaders changed their ISR and left a notification."""

    states: Mapping[TopicPartition, Leadership]
    notifications: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StatesReread:
    """A write of ours met another version: this is what is there."""

    states: Mapping[TopicPartition, Leadership]


@dataclass(frozen=True, slots=True)
class LogDirsSeen:
    """These brokers lost a log directory; which replicas were on it, only they know."""

    brokers: frozenset[BrokerId]
    notifications: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UncleanSeen:
    """`unclean.leader.election.enable` changed for one topic; None follows the broker's."""

    topic: str
    allowed: bool | None


@dataclass(frozen=True, slots=True)
class RulesSeen:
    """Settings of the broker changed while it runs."""

    rules: Rules


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered:
    broker: BrokerId
    epoch: BrokerEpoch
    codes: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class StopReplicaAnswered:
    """Only about replicas that were to be deleted."""

    broker: BrokerId
    epoch: BrokerEpoch
    codes: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic as asked for: -1 stands for the default; an assignment excludes both numbers.

    Its id and the throws of the dice are filled in before it becomes an event.
    """

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, Replicas] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    id: TopicId = NO_TOPIC_ID
    roll: Roll = NOT_ROLLED


@dataclass(frozen=True, slots=True)
class TopicsAsked:
    ask: int
    topics: tuple[NewTopic, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class MorePartitions:
    name: str
    total: int
    assignment: tuple[Replicas, ...] | None = None


@dataclass(frozen=True, slots=True)
class PartitionsAsked:
    ask: int
    topics: tuple[MorePartitions, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class DeletionAsked:
    """One `ask` per topic, because each ends at its own time."""

    asks: Mapping[str, int]


class ElectionKind(Enum):
    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class ElectionAsked:
    """Every partition when none is named. `ask` is None when a node in the store asked."""

    ask: int | None
    kind: ElectionKind
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class BalanceDue:
    """Time to see whether leaders have drifted from their preferred brokers."""


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    ask: int
    broker: BrokerId
    epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class MovesAsked:
    """Reassignment, by request or by the node in the store."""

    ask: int | None
    moves: Moves
    keep_factor: bool = False


Event: TypeAlias = (
    Elected
    | BrokersSeen
    | BrokerBehind
    | TopicsSeen
    | PartitionsSeen
    | DeletionsSeen
    | StatesSeen
    | StatesReread
    | LogDirsSeen
    | UncleanSeen
    | RulesSeen
    | LeaderAndIsrAnswered
    | StopReplicaAnswered
    | TopicsAsked
    | PartitionsAsked
    | DeletionAsked
    | ElectionAsked
    | BalanceDue
    | ShutdownAsked
    | MovesAsked
)
