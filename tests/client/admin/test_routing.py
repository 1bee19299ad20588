from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from ottla.client.admin.routing import ToBroker, ToCoordinator, ToLeader, ToTarget
from ottla.client.cluster import Cluster, CoordinatorKind, Target
from ottla.client.cluster_view import ClusterView, Node, PartitionView, TopicView
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, TopicPartition

LED = PartitionView(0, 1, 0, (1,), (1,), ())
ORPHAN = PartitionView(1, -1, 0, (1,), (), (1,))
VIEW = ClusterView(
    nodes={1: Node(1, "here", 9092)},
    topics={"t": TopicView("t", NO_TOPIC_ID, False, (LED, ORPHAN))},
    errors={"secret": ErrorCode.topic_authorization_failed},
)


class FakeCluster:
    """A cluster that knows one view, and notes what it is told to look at again."""

    metadata = VIEW

    def __init__(self) -> None:
        self.looked: list[Any] = []

    async def leader(self, tp: TopicPartition) -> int:
        return VIEW.leader(tp)

    async def refresh(self, topics: Any = None) -> ClusterView:
        self.looked.append(topics)
        return VIEW

    async def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        return 1

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        self.looked.append((kind, key))


@pytest.fixture
def cluster() -> Any:
    return FakeCluster()


def test_a_partition_is_asked_for_at_its_leader(cluster: Any) -> None:
    place = ToLeader(cast(Cluster, cluster))
    assert asyncio.run(place.of(TopicPartition("t", 0))) == 1
    asyncio.run(place.on_wrong_broker(TopicPartition("t", 0)))
    assert cluster.looked == [("t",)]


@pytest.mark.parametrize(
    ("partition", "code"),
    [
        (TopicPartition("t", 1), ErrorCode.leader_not_available),
        (TopicPartition("t", 9), ErrorCode.unknown_topic_or_partition),
        (TopicPartition("nowhere", 0), ErrorCode.unknown_topic_or_partition),
        (TopicPartition("secret", 0), ErrorCode.topic_authorization_failed),
    ],
)
def test_a_partition_without_a_leader_says_why(
    cluster: Any, partition: TopicPartition, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        asyncio.run(ToLeader(cast(Cluster, cluster)).of(partition))
    assert refused.value.code is code


@pytest.mark.parametrize(
    ("partition", "code", "is_behind"),
    [
        (TopicPartition("t", 0), ErrorCode.unknown_topic_or_partition, True),
        (TopicPartition("t", 0), ErrorCode.offset_out_of_range, False),
        (TopicPartition("t", 9), ErrorCode.unknown_topic_or_partition, False),
        (TopicPartition("nowhere", 0), ErrorCode.unknown_topic_or_partition, False),
    ],
)
def test_a_leader_that_does_not_know_a_known_partition_is_behind(
    cluster: Any, partition: TopicPartition, code: ErrorCode, is_behind: bool
) -> None:
    route = ToLeader(cast(Cluster, cluster))
    assert route.is_behind(partition, KafkaError(code)) is is_behind
    exists = ToLeader(cast(Cluster, cluster), exists=True)
    unknown = code is ErrorCode.unknown_topic_or_partition
    assert exists.is_behind(partition, KafkaError(code)) is unknown
    assert not ToBroker(cast(Cluster, cluster)).is_behind(1, KafkaError(code))


def test_a_coordinator_that_was_wrong_is_forgotten(cluster: Any) -> None:
    place = ToCoordinator(cast(Cluster, cluster), CoordinatorKind.GROUP)
    assert asyncio.run(place.of("g")) == 1
    asyncio.run(place.on_wrong_broker("g"))
    assert cluster.looked == [(CoordinatorKind.GROUP, "g")]


def test_a_broker_is_itself_and_one_that_is_not_there_is_an_error(cluster: Any) -> None:
    place = ToBroker(cast(Cluster, cluster))
    assert asyncio.run(place.of(1)) == 1
    with pytest.raises(KafkaError, match="no broker 2"):
        asyncio.run(place.of(2))
    asyncio.run(place.on_wrong_broker(1))
    assert cluster.looked == [(), ()]


def test_the_controller_is_looked_for_again(cluster: Any) -> None:
    place = ToTarget(cast(Cluster, cluster), Target.CONTROLLER)
    assert asyncio.run(place.of("anything")) is Target.CONTROLLER
    asyncio.run(place.on_wrong_broker("anything"))
    assert cluster.looked == [()]
