"""What the controller wants done, as values: writes first, then requests, then answers.

Owns the shapes. Never does anything: `outbox.py` performs a `Step`. The three requests are the
only ones a controller sends (LeaderAndIsr, StopReplica, UpdateMetadata); all that one event has
to say to one broker travels in one of each.
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
    """True when it names every replica of the broker, so that it may drop what is not named."""


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


Send: TypeAlias = LeaderAndIsr | StopReplica | UpdateMetadata


class Reply(NamedTuple):
    """The answer to somebody who asked; `ask` is the number the question carried."""

    ask: int
    answer: object


class Step(NamedTuple):
    """One event's outcome. The state holds only once every write has succeeded."""

    state: ControllerState
    writes: tuple[Op, ...] = ()
    sends: tuple[Send, ...] = ()
    replies: tuple[Reply, ...] = ()
    notes: tuple[str, ...] = ()
