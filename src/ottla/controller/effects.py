"""The effects of an event, as values: store writes, then requests to brokers, then replies.

Owns the types. Never acts: `runtime/` performs a `Step`. A controller sends three requests
(LeaderAndIsr, StopReplica, UpdateMetadata); one event sends a broker at most one of each.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.controller.state import ControllerState, PartitionAssignment
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.store.port import Op


class PartitionLeadership(NamedTuple):
    """One partition of a LeaderAndIsr."""

    tp: TopicPartition
    topic_id: TopicId
    partition: PartitionAssignment
    is_new: bool


class LeaderAndIsr(NamedTuple):
    broker: BrokerId
    partitions: tuple[PartitionLeadership, ...]
    full: bool
    """True when it names every replica of the broker, so that the broker may drop the others."""


class StoppedReplica(NamedTuple):
    """One replica of a StopReplica."""

    tp: TopicPartition
    leader_epoch: LeaderEpoch
    delete: bool


class StopReplica(NamedTuple):
    broker: BrokerId
    replicas: tuple[StoppedReplica, ...]


class PublishedPartition(NamedTuple):
    """One partition of an UpdateMetadata; `deleted` makes brokers forget it."""

    tp: TopicPartition
    topic_id: TopicId
    partition: PartitionAssignment
    offline: tuple[BrokerId, ...]
    deleted: bool


class UpdateMetadata(NamedTuple):
    brokers: tuple[BrokerId, ...]
    partitions: tuple[PublishedPartition, ...]
    full: bool = False
    """True when it names every partition: the receivers drop all others."""


Send: TypeAlias = LeaderAndIsr | StopReplica | UpdateMetadata


class Reply(NamedTuple):
    """The reply to the pending request `request_id`."""

    request_id: int
    answer: object
    at_once: bool = False
    """False: wait a moment until the live brokers have received the requests of the same step."""


class Step(NamedTuple):
    """The outcome of one event. The state applies only after every write has succeeded."""

    state: ControllerState
    writes: tuple[Op, ...] = ()
    sends: tuple[Send, ...] = ()
    replies: tuple[Reply, ...] = ()
    warnings: tuple[str, ...] = ()
    """Lines for the log."""
