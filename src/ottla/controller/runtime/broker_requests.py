"""The fields of the controller's three requests, and the brokers' replies as events.

Owns which fields each request carries, and which errors mean that a request was not delivered.
Never sends, never chooses a version: the link to the broker does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from ottla.config.listeners import PROTOCOLS
from ottla.controller.effects import (
    LeaderAndIsr,
    PartitionLeadership,
    PublishedPartition,
    Send,
    StoppedReplica,
    StopReplica,
    UpdateMetadata,
)
from ottla.controller.events import Event, LeaderAndIsrReplied, StopReplicaReplied
from ottla.controller.state import BrokerState, ControllerState, Leadership
from ottla.delay.slices import sliced
from ottla.metadata.image import DELETED
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    NO_BROKER,
    NO_EPOCH,
    BrokerId,
    ControllerEpoch,
    TopicId,
    TopicPartition,
)
from ottla.protocol.interbroker import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from ottla.protocol.schema import KioMessage

INCREMENTAL: Final = 1
FULL: Final = 2
PARTITIONS_MAX: Final = 200
"""In one request."""
NOT_DELIVERED: Final = frozenset(
    {
        ErrorCode.stale_controller_epoch,  # a newer controller exists: until we notice and resign
        ErrorCode.stale_broker_epoch,  # the broker restarted: until we notice
        ErrorCode.cluster_authorization_failed,  # until an operator allows it
        ErrorCode.request_timed_out,  # the broker could not read the metadata store
    }
)
"""The broker did nothing: the request is sent again."""

Fields = dict[str, object]
Item = TypeVar("Item", PartitionLeadership, StoppedReplica, PublishedPartition)


class Request(NamedTuple):
    """One request to one broker, ready to be sent, and how to read the reply."""

    broker: BrokerState
    key: int
    fields: Fields
    deleted: tuple[TopicPartition, ...]
    """In a StopReplica, the replicas to be deleted: only their results matter."""
    names: Mapping[TopicId, str]
    """Topic names by id, because a LeaderAndIsr reply has only the ids."""

    def event(self, reply: KioMessage) -> Event | None:
        """The event of a decoded reply, if the controller needs it."""
        if self.key == LEADER_AND_ISR:
            codes = {
                TopicPartition(self.names[topic.topic_id], item.partition_index): item.error_code
                for topic in reply.topics
                if topic.topic_id in self.names
                for item in topic.partition_errors
            }
            return LeaderAndIsrReplied(self.broker.id, self.broker.epoch, codes)
        if self.key == STOP_REPLICA and self.deleted:
            top_level = reply.error_code
            by_partition = {
                TopicPartition(item.topic_name, item.partition_index): item.error_code
                for item in reply.partition_errors
            }
            codes = {tp: by_partition.get(tp, top_level) for tp in self.deleted}
            return StopReplicaReplied(self.broker.id, self.broker.epoch, codes)
        return None


def requests(state: ControllerState, sends: Iterable[Send]) -> Iterator[Request]:
    """All requests of one step, in the order in which each broker must get them.

    Large ones are split, so that neither this broker nor the receiver is blocked for long.
    """
    for send in sends:
        match send:
            case LeaderAndIsr():
                for led in sliced(send.partitions, PARTITIONS_MAX):
                    yield _leader_and_isr(state, send._replace(partitions=tuple(led)))
            case StopReplica():
                for stopped in sliced(send.replicas, PARTITIONS_MAX):
                    yield _stop_replica(state, send._replace(replicas=tuple(stopped)))
            case UpdateMetadata():
                slices = sliced(send.partitions, PARTITIONS_MAX) or [()]
                for left, published in zip(reversed(range(len(slices))), slices, strict=True):
                    part = send._replace(partitions=tuple(published))
                    yield from _update_metadata(state, part, left)


def _leader_and_isr(state: ControllerState, send: LeaderAndIsr) -> Request:
    leaders = {led.partition.leader for led in send.partitions} - {NO_BROKER}
    broker = state.brokers[send.broker]
    fields = {
        **_head(state, broker),
        "type": FULL if send.full else INCREMENTAL,
        "topic_states": _by_topic(send.partitions, _leadership_fields, with_id=True),
        "live_leaders": [
            {"broker_id": id, "host_name": listener.host, "port": listener.port}
            for id in sorted(leaders & state.brokers.keys())
            for listener in state.brokers[id].listeners[:1]
        ],
    }
    names = {led.topic_id: led.tp.topic for led in send.partitions}
    return Request(broker, LEADER_AND_ISR, fields, (), names)


def _stop_replica(state: ControllerState, send: StopReplica) -> Request:
    broker = state.brokers[send.broker]
    fields = {
        **_head(state, broker),
        "topic_states": _by_topic(send.replicas, _stop_fields, with_id=False),
    }
    deleted = tuple(stopped.tp for stopped in send.replicas if stopped.delete)
    return Request(broker, STOP_REPLICA, fields, deleted, {})


def _update_metadata(
    state: ControllerState, send: UpdateMetadata, requests_left: int
) -> Iterable[Request]:
    shared = {
        "type": FULL if send.full else INCREMENTAL,
        "requests_left": requests_left,
        "topic_states": _by_topic(send.partitions, _metadata_fields, with_id=True),
        "live_brokers": [_broker(broker) for broker in state.brokers.values()],
    }
    for id in send.brokers:
        broker = state.brokers[id]
        yield Request(broker, UPDATE_METADATA, {**_head(state, broker), **shared}, (), {})


def _head(state: ControllerState, broker: BrokerState) -> Fields:
    return {
        "controller_id": state.broker_id,
        "is_kraft_controller": False,
        "controller_epoch": state.epoch,
        "broker_epoch": broker.epoch,
    }


def _broker(broker: BrokerState) -> Fields:
    return {
        "id": broker.id,
        "rack": broker.rack,
        "endpoints": [
            {
                "port": listener.port,
                "host": listener.host,
                "listener": listener.name,
                "security_protocol": PROTOCOLS.index(listener.protocol),
            }
            for listener in broker.listeners
        ],
    }


def _by_topic(
    items: Sequence[Item], fields: Callable[[Item], Fields], *, with_id: bool
) -> list[Fields]:
    """Group the partitions by topic, as the messages nest them."""
    in_order = sorted(items, key=lambda item: item.tp)
    topics: list[Fields] = []
    for name, group in groupby(in_order, key=lambda item: item.tp.topic):
        members = list(group)
        topic: Fields = {"topic_name": name, "partition_states": [fields(m) for m in members]}
        first = members[0]
        if with_id and not isinstance(first, StoppedReplica):
            topic["topic_id"] = first.topic_id
        topics.append(topic)
    return topics


def _leadership(leadership: Leadership | None, epoch: ControllerEpoch) -> Leadership:
    return leadership or Leadership(NO_BROKER, (), NO_EPOCH, epoch, 0)


def _leadership_fields(led: PartitionLeadership) -> Fields:
    partition, leadership = led.partition, led.partition.leadership
    assert leadership is not None, f"partition {led.tp} has no leadership to send"
    return {
        "partition_index": led.tp.partition,
        "controller_epoch": leadership.controller_epoch,
        "leader": leadership.leader,
        "leader_epoch": leadership.leader_epoch,
        "isr": leadership.isr,
        "partition_epoch": leadership.version,
        "replicas": partition.replicas,
        "adding_replicas": partition.adding,
        "removing_replicas": partition.removing,
        "is_new": led.is_new,
        "leader_recovery_state": 0,
    }


def _stop_fields(stopped: StoppedReplica) -> Fields:
    return {
        "partition_index": stopped.tp.partition,
        "leader_epoch": stopped.leader_epoch,
        "delete_partition": stopped.delete,
    }


def _metadata_fields(published: PublishedPartition) -> Fields:
    leadership = _leadership(published.partition.leadership, ControllerEpoch(0))
    leader: BrokerId = DELETED if published.deleted else leadership.leader
    return {
        "partition_index": published.tp.partition,
        "controller_epoch": leadership.controller_epoch,
        "leader": leader,
        "leader_epoch": leadership.leader_epoch,
        "isr": leadership.isr,
        "zk_version": leadership.version,
        "replicas": published.partition.replicas,
        "offline_replicas": published.offline,
    }
