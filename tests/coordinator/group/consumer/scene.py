"""Groups of the consumer protocol without a broker, and members that do as clients do.

A member keeps what it holds until it has given it up, which takes it a step of its own, and says
what it holds in its next heartbeat. So a test can look at who holds what as the members see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from ottla.coordinator.group.classic.member import Protocol
from ottla.coordinator.group.consumer.classic_metadata import write_assignment
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.heartbeat import (
    HeartbeatReply,
    HeartbeatRequest,
    ResolvedPatterns,
)
from ottla.coordinator.group.consumer.service import resolve
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts, TopicIdPartition
from ottla.coordinator.record_fields import Writer
from ottla.metadata.image import Image, PartitionMetadata, TopicMetadata
from ottla.model.errors import KafkaError
from ottla.model.ids import BrokerId, LeaderEpoch
from tests.coordinator.group.scene import GROUP, Scene

SESSION_MS = 45_000
LED = PartitionMetadata(BrokerId(0), LeaderEpoch(0), (), ())


def id_of(name: str) -> UUID:
    return UUID(int=sum(byte << 8 * at for at, byte in enumerate(name.encode())))


def image_of(counts: Mapping[str, int]) -> Image:
    topics = {
        name: TopicMetadata(id_of(name), dict.fromkeys(range(n), LED)) for name, n in counts.items()
    }
    return Image(topics=topics, names={topic.id: name for name, topic in topics.items()})


def parts(name: str, *indexes: int) -> Parts:
    return frozenset(TopicIdPartition(id_of(name), index) for index in indexes)


def indexes(held: Iterable[TopicIdPartition]) -> list[int]:
    return sorted(part.partition for part in held)


class ConsumerScene(Scene):
    def __init__(self, log: list[tuple[bytes, bytes | None]] | None = None, **limits: Any) -> None:
        super().__init__(log, **limits)
        self.image = image_of({"t": 4})

    @property
    def it(self) -> ConsumerGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def topics(self, **counts: int) -> None:
        """From now on there are these; those with dashes are named with underscores."""
        before = self.image.topics
        self.image = image_of({name.replace("_", "-"): count for name, count in counts.items()})
        after = self.image.topics
        names = {
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        }
        self.shard.consumer.topics_changed(names)

    def beat(self, ask: HeartbeatRequest, group: str = GROUP) -> HeartbeatReply:
        """As the service would: patterns first."""
        consumer = self.shard.consumer
        wanted, of = consumer.to_resolve(group, ask, self.now)
        found = (
            ResolvedPatterns(resolve(wanted, self.image.topics), of)
            if wanted
            else ResolvedPatterns()
        )
        reply = self.execute(consumer.heartbeat(group, ask, found, self.now))
        assert isinstance(reply, HeartbeatReply)
        return reply

    def after_a_crash(self) -> ConsumerScene:
        """Another broker reads what there is of the log."""
        after = ConsumerScene(list(self.log))
        after.now, after.image, after.limits = self.now, self.image, self.limits
        after.numbers = self.numbers
        return after

    def owners(self) -> dict[TopicIdPartition, str]:
        return dict(self.it.owners)


class Client:
    """A consumer that speaks the consumer protocol."""

    def __init__(self, scene: ConsumerScene, name: str, *topics: str, **more: Any) -> None:
        self.scene = scene
        self.id = name
        self.topics = topics or ("t",)
        self.more = more
        self.epoch = 0
        self.held: Parts = NO_PARTS
        self.given: Parts = NO_PARTS

    def ask(self, **changes: Any) -> HeartbeatRequest:
        """Everything there is to say."""
        full = HeartbeatRequest(
            self.id,
            self.epoch,
            topics=self.topics,
            rebalance_timeout_ms=60_000,
            owned=self.held,
            **self.more,
        )
        return full._replace(**changes)

    def beat(self, **changes: Any) -> HeartbeatReply:
        """Say everything, hear what to hold, and begin to do it."""
        return self.restart_session(self.scene.beat(self.ask(**changes)))

    def restart_session(self, reply: HeartbeatReply) -> HeartbeatReply:
        self.id, self.epoch = reply.member_id, reply.epoch
        if reply.assignment is not None:
            self.given = reply.assignment
        return reply

    def obey(self) -> None:
        """Give up what it shall not hold, take what it may."""
        self.held = self.given

    def step(self) -> None:
        """One heartbeat, obeyed at once; fenced, it drops everything and comes again."""
        try:
            self.beat()
        except KafkaError:
            self.epoch, self.held, self.given = 0, NO_PARTS, NO_PARTS
            self.beat()
        self.obey()

    def leave(self, epoch: int = -1) -> HeartbeatReply:
        instance_id = self.more.get("instance_id")
        return self.scene.beat(HeartbeatRequest(self.id, epoch, instance_id=instance_id))


def settle(*clients: Client) -> None:
    """Until everybody has what it shall have."""
    for _ in range(20):
        for client in clients:
            client.step()
        scene = clients[0].scene
        if scene.it.state.value == "Stable":
            return
    raise AssertionError(f"it does not settle: {scene.it.state}")


def subscription(*topics: str, owned: Mapping[str, list[int]] | None = None) -> bytes:
    """A classic consumer's metadata, in version 1."""
    out = Writer(1).array(len(topics))
    for topic in topics:
        out.string(topic)
    inside = write_assignment(owned or {}, 1)[2:-4]
    return out.blob(None).raw(inside).done()


def protocols(*names: str, topic: str = "t", **owned: Any) -> tuple[Protocol, ...]:
    return tuple(Protocol(name, subscription(topic, **owned)) for name in names)
