"""The state of the active controller: brokers, topics, partitions and running deletions.

Owns the values and the two tables of legal state changes. Never decides: `machine.py` and the
modules beside it do. Everything here is immutable; the changes of one event are collected in a
`Draft`, which returns the next state. An event whose store writes fail has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Self, TypeAlias

from ottla.config.broker import BrokerConfig
from ottla.model.ids import (
    NO_BROKER,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)
from ottla.store.nodes import EndpointNode

NO_CONTROLLER_YET: Final = ControllerEpoch(0)

JUST_NOW: Final = 1 << 62
"""Instead of a number, for states that were not read from the store."""

Replicas: TypeAlias = tuple[BrokerId, ...]


class PartitionState(Enum):
    NON_EXISTENT = "NonExistent"
    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"


class ReplicaState(Enum):
    NON_EXISTENT = "NonExistent"
    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"
    DELETION_STARTED = "DeletionStarted"
    DELETION_SUCCESSFUL = "DeletionSuccessful"
    DELETION_INELIGIBLE = "DeletionIneligible"


P, R = PartitionState, ReplicaState

PARTITION_MOVES: Final[Mapping[PartitionState, frozenset[PartitionState]]] = MappingProxyType(
    {  # state -> legal next states
        P.NON_EXISTENT: frozenset({P.NEW}),
        P.NEW: frozenset({P.ONLINE, P.OFFLINE}),
        P.ONLINE: frozenset({P.ONLINE, P.OFFLINE}),
        P.OFFLINE: frozenset({P.ONLINE, P.OFFLINE, P.NON_EXISTENT}),
    }
)

REPLICA_MOVES: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = MappingProxyType(
    {
        R.NON_EXISTENT: frozenset({R.NEW}),
        R.NEW: frozenset({R.ONLINE, R.OFFLINE}),
        R.ONLINE: frozenset({R.ONLINE, R.OFFLINE}),
        R.OFFLINE: frozenset({R.ONLINE, R.OFFLINE, R.DELETION_STARTED, R.DELETION_INELIGIBLE}),
        R.DELETION_STARTED: frozenset({R.DELETION_SUCCESSFUL, R.DELETION_INELIGIBLE}),
        R.DELETION_SUCCESSFUL: frozenset({R.NON_EXISTENT}),
        R.DELETION_INELIGIBLE: frozenset({R.ONLINE, R.OFFLINE}),
    }
)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A registered broker; a restart changes its epoch."""

    id: BrokerId
    epoch: BrokerEpoch
    listeners: tuple[EndpointNode, ...]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Leadership:
    """Leader and ISR of a partition, and the version of its state node."""

    leader: BrokerId
    isr: Replicas
    leader_epoch: LeaderEpoch
    controller_epoch: ControllerEpoch
    version: int
    written: int = field(default=JUST_NOW, compare=False)
    """The number of the store's write that it was read from: a broker whose epoch, which is such a
    number, is higher has registered since."""


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """The replicas of a partition and the state of each.

    While a reassignment runs, `replicas` holds the old ones and `adding`, and keeps those in
    `removing` until the end.
    """

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()
    state: PartitionState = P.NON_EXISTENT
    leadership: Leadership | None = None
    replica_states: Mapping[BrokerId, ReplicaState] = field(default_factory=dict)

    @property
    def leader(self) -> BrokerId:
        return NO_BROKER if self.leadership is None else self.leadership.leader

    @property
    def isr(self) -> Replicas:
        return () if self.leadership is None else self.leadership.isr

    @property
    def target(self) -> Replicas:
        """The replicas after a running reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    id: TopicId
    partitions: Mapping[int, PartitionAssignment]
    version: int
    """Of the topic's node: a write of a new assignment is conditional on it."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A running topic deletion. `request_ids`: the requests that wait for it."""

    started: bool = False
    ineligible: bool = False
    request_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The settings that decisions depend on."""

    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool = False
    num_partitions: int = 1
    default_replication_factor: int = 1
    leader_imbalance_per_broker_percentage: int = 10
    partitions_per_request_max: int = 10_000
    """As in Kafka's controller: more in one request is a policy violation."""

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            config.delete_topic_enable,
            config.unclean_leader_election_enable,
            config.num_partitions,
            config.default_replication_factor,
            config.leader_imbalance_per_broker_percentage,
        )


@dataclass(frozen=True, slots=True)
class ControllerState:
    broker_id: BrokerId
    rules: TopicRules = TopicRules()
    epoch: ControllerEpoch = NO_CONTROLLER_YET
    epoch_version: int = 0
    brokers: Mapping[BrokerId, BrokerState] = field(default_factory=dict)
    shutting_down: frozenset[BrokerId] = frozenset()
    topics: Mapping[str, TopicAssignment] = field(default_factory=dict)
    failed_directories: Mapping[BrokerId, frozenset[TopicPartition]] = field(default_factory=dict)
    """Replicas on failed log directories of live brokers."""
    deletions: Mapping[str, Deletion] = field(default_factory=dict)
    unclean: Mapping[str, bool] = field(default_factory=dict)
    """Topics with their own `unclean.leader.election.enable`."""
    unclean_elections: int = 0

    @property
    def live(self) -> frozenset[BrokerId]:
        """Brokers that may lead partitions: not those that are shutting down."""
        return frozenset(self.brokers) - self.shutting_down

    def is_online(self, broker: BrokerId, tp: TopicPartition) -> bool:
        """The broker is registered and its log directory of this partition works."""
        return broker in self.brokers and tp not in self.failed_directories.get(broker, ())

    def allows_unclean(self, topic: str) -> bool:
        return self.unclean.get(topic, self.rules.unclean_leader_election_enable)

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionAssignment]]:
        for name, topic in self.topics.items():
            for number, partition in topic.partitions.items():
                yield TopicPartition(name, number), partition

    def offline_partition_count(self) -> int:
        """Partitions without a leader, except those being deleted."""
        return sum(
            partition.state is P.OFFLINE
            for tp, partition in self.partitions()
            if tp.topic not in self.deletions
        )
