"""AlterPartition: the controller changes an in-sync set at the request of a leader."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.api.interbroker.alter_partition import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode as E
from ottla.model.ids import BrokerEpoch, TopicPartition
from ottla.store import paths
from ottla.store.nodes import StateNode
from tests.api.handler_client import ask
from tests.fakes.control_plane import ControlPlane, Node, control_plane, settle, until

TP = TopicPartition("t", 0)


class Cluster:
    def __init__(self, plane: ControlPlane, one: Node, two: Node) -> None:
        self.plane = plane
        self.one = one
        self.two = two

    async def propose(self, *isr: tuple[int, int], **more: Any) -> Any:
        """The result of the partition, asked by broker 1, its leader, at the controller."""
        state = await self.state()
        version = more.get("version", 3)
        members = {
            "new_isr": [id for id, _ in isr],
            "new_isr_with_epochs": [{"broker_id": id, "broker_epoch": e} for id, e in isr],
        }
        partition = {
            "partition_index": more.get("partition", 0),
            "leader_epoch": more.get("leader_epoch", state[1]),
            "partition_epoch": more.get("partition_epoch", state[2]),
            **members,
        }
        topic_id = more.get("topic_id", self.one.metadata.image.topics["t"].id)
        asked = {
            "broker_id": more.get("broker_id", 1),
            "broker_epoch": more.get("broker_epoch", self.one.registration.epoch),
            "topics": [{"topic_id": topic_id, "partitions": [partition]}],
        }
        reply = await ask(more.get("asked_of", self.one), API, asked, version)
        if reply.error_code is not E.none:
            return reply
        [[result]] = [topic.partitions for topic in reply.topics]
        return result

    async def state(self) -> tuple[tuple[int, ...], int, int]:
        node = await self.one.store.get(paths.partition_state(TP))
        assert node is not None
        state = StateNode.decode(node.data)
        return state.isr, state.leader_epoch, node.version

    @property
    def epochs(self) -> tuple[int, int]:
        return self.one.registration.epoch, self.two.registration.epoch


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """Broker 1 is the controller, and leads the partition with broker 2 in sync."""
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        topic = NewTopic("t", assignment={0: (one.id, two.id)})
        await one.controller.create_topics([topic], 5_000)
        await settle()
        yield Cluster(plane, one, two)


@pytest.mark.spec("CTL-10", "REP-29")
@pytest.mark.parametrize("version", [2, 3])
async def test_a_leader_shrinks_and_grows_its_set_and_all_brokers_hear_of_it(version: int) -> None:
    async with cluster() as brokers:
        mine, other = brokers.epochs
        shrunk = await brokers.propose((1, mine), version=version)
        assert (shrunk.error_code, shrunk.isr, shrunk.partition_epoch) == (E.none, (1,), 1)
        assert (shrunk.leader_id, shrunk.leader_epoch) == (1, 0)
        assert await brokers.state() == ((1,), 0, 1)
        await until(lambda: seen(brokers.two) == (1,))
        grown = await brokers.propose((1, mine), (2, other), version=version)
        assert (grown.error_code, grown.isr, grown.partition_epoch) == (E.none, (1, 2), 2)
        await until(lambda: seen(brokers.two) == (1, 2))


def seen(node: Node) -> tuple[int, ...]:
    partition = node.metadata.image.partition(TP)
    assert partition is not None
    return partition.isr


@pytest.mark.spec("CTL-35")
async def test_who_restarted_or_left_or_leaves_cannot_come_into_the_set() -> None:
    async with cluster() as brokers:
        mine, other = brokers.epochs
        await brokers.propose((1, mine))
        refused = await brokers.propose((1, mine), (2, other - 1))
        assert refused.error_code is E.ineligible_replica
        refused = await brokers.propose((1, mine), (3, -1))
        assert refused.error_code is E.ineligible_replica
        await brokers.one.controller.controlled_shutdown(brokers.two.id, BrokerEpoch(other))
        refused = await brokers.propose((1, mine), (2, other))
        assert refused.error_code is E.ineligible_replica
        await brokers.plane.kill(2)
        refused = await brokers.propose((1, mine), (2, other))
        assert refused.error_code is E.ineligible_replica
        assert (await brokers.state())[0] == (1,)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"broker_epoch": 1}, E.stale_broker_epoch),
        ({"broker_id": 9}, E.stale_broker_epoch),
        ({"leader_epoch": -1}, E.fenced_leader_epoch),
        ({"leader_epoch": 1}, E.not_controller),
        ({"partition_epoch": -1}, E.invalid_update_version),
        ({"partition_epoch": 1}, E.not_controller),
        ({"topic_id": None}, E.unknown_topic_id),
        ({"partition": 1}, E.unknown_topic_or_partition),
    ],
)
async def test_a_proposal_from_another_time_is_refused(more: dict[str, Any], code: E) -> None:
    async with cluster() as brokers:
        result = await brokers.propose((1, brokers.epochs[0]), **more)
        assert result.error_code is code
        assert await brokers.state() == ((1, 2), 0, 0)


async def test_only_the_leader_may_propose_and_only_a_set_with_itself() -> None:
    async with cluster() as brokers:
        mine, other = brokers.epochs
        result = await brokers.propose((2, other), broker_id=2, broker_epoch=other)
        assert result.error_code is E.fenced_leader_epoch
        result = await brokers.propose((2, other))
        assert result.error_code is E.invalid_request
        result = await brokers.propose((1, mine), asked_of=brokers.two)
        assert result.error_code is E.not_controller


async def test_a_repeated_request_gets_the_state_that_it_already_brought_about() -> None:
    async with cluster() as brokers:
        mine, _ = brokers.epochs
        for _ in range(2):
            result = await brokers.propose((1, mine), partition_epoch=0)
            assert (result.error_code, result.partition_epoch) == (E.none, 1)
        assert await brokers.state() == ((1,), 0, 1)
