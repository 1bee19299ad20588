"""What the clients share: who leads what, and one question to one broker."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client.cluster import ConnectionLane, CoordinatorKind, Target
from ottla.client.errors import ErrorCode, KafkaError, UnsupportedVersion
from ottla.model.ids import TopicPartition
from tests.client.rig import connected
from tests.fakes.scripted_broker import (
    FIND_COORDINATOR,
    HANG_UP,
    INIT_PRODUCER_ID,
    METADATA,
    SILENCE,
    ScriptedBroker,
)

ASKED = {"transactional_id": None, "transaction_timeout": 0}


@pytest.mark.real_loop
async def test_a_topic_is_waited_for_until_it_is_there() -> None:
    async with ScriptedBroker(topics={}) as broker, connected(broker) as cluster:
        asyncio.get_running_loop().call_later(0.02, broker.topics.update, {"late": 2})
        topic = await cluster.topic("late", timeout_ms=60_000)
        assert [each.leader for each in topic.partitions] == [0, 0]
        before = broker.count(METADATA)
        assert await cluster.topic("late", timeout_ms=1) == topic
        assert await cluster.leader(TopicPartition("late", 1)) == 0
        assert broker.count(METADATA) == before, "what is known is not asked for"


@pytest.mark.spec("PRD-06")
@pytest.mark.real_loop
async def test_a_topic_that_does_not_come_to_be_runs_out_of_time_and_says_why() -> None:
    async with ScriptedBroker(topics={}) as broker, connected(broker) as cluster:
        with pytest.raises(TimeoutError, match="topic missing: unknown_topic_or_partition"):
            await cluster.topic("missing", timeout_ms=300)


@pytest.mark.real_loop
async def test_a_topic_that_cannot_be_is_refused_at_once() -> None:
    async with ScriptedBroker(topics={}) as broker, connected(broker) as cluster:
        refused = {"error_code": ErrorCode.topic_authorization_failed, "name": "secret",
                   "topic_id": None, "partitions": []}  # fmt: skip
        whole = broker._metadata(type("Asked", (), {"topics": None})())
        broker.script(METADATA, {**whole, "topics": [refused]})
        with pytest.raises(KafkaError, match="topic_authorization_failed"):
            await cluster.topic("secret", timeout_ms=60_000)


@pytest.mark.real_loop
async def test_the_newest_common_version_is_spoken_and_none_is_an_error() -> None:
    async with ScriptedBroker() as broker, connected(broker) as cluster:
        broker.versions[INIT_PRODUCER_ID] = (0, 3)
        broker.features["transaction.version"] = 2
        await cluster.ask(Target.ANY, INIT_PRODUCER_ID, ASKED)
        await cluster.ask(Target.ANY, INIT_PRODUCER_ID, ASKED, at_most=1)
        spoken = [version for key, version, _ in broker.asked if key == INIT_PRODUCER_ID]
        assert spoken == [3, 1]
        assert await cluster.version(Target.ANY, INIT_PRODUCER_ID) == 3
        assert await cluster.features() == {"transaction.version": 2}
        with pytest.raises(UnsupportedVersion):
            await cluster.ask(Target.ANY, 68, {})


@pytest.mark.spec("PRD-49")
@pytest.mark.real_loop
async def test_a_request_without_a_reply_closes_the_connection_and_the_next_makes_another() -> None:
    async with ScriptedBroker() as broker, connected(broker) as cluster:
        broker.script(INIT_PRODUCER_ID, SILENCE, HANG_UP)
        with pytest.raises(TimeoutError):
            await cluster.ask(Target.ANY, INIT_PRODUCER_ID, ASKED, timeout_ms=30)
        with pytest.raises(ConnectionError):
            await cluster.ask(Target.ANY, INIT_PRODUCER_ID, ASKED)
        reply = await cluster.ask(Target.ANY, INIT_PRODUCER_ID, ASKED)
        assert reply.producer_id == 5
        assert broker.connections == 3


@pytest.mark.real_loop
async def test_the_controller_is_looked_up_and_an_unknown_broker_is_said_to_be_unknown() -> None:
    async with ScriptedBroker(id=4) as broker, connected(broker) as cluster:
        assert (await cluster.ask(Target.CONTROLLER, INIT_PRODUCER_ID, ASKED)).producer_id == 5
        with pytest.raises(ConnectionError, match="broker 9 is not in the cluster metadata"):
            await cluster.ask(9, INIT_PRODUCER_ID, ASKED)
        assert cluster.link(9) is None
        link = cluster.link(4)
        assert link is not None
        assert link.node.id == 4


@pytest.mark.spec("TXN-28")
@pytest.mark.real_loop
async def test_a_coordinator_is_found_remembered_and_forgotten() -> None:
    async with ScriptedBroker(id=4) as broker, connected(broker) as cluster:
        busy = {"error_code": ErrorCode.coordinator_not_available, "node_id": -1, "host": "",
                "port": -1, "error_message": None, "key": "g"}  # fmt: skip
        broker.script(FIND_COORDINATOR, {"coordinators": [busy]})
        assert await cluster.coordinator(CoordinatorKind.GROUP, "g") == 4
        assert await cluster.coordinator(CoordinatorKind.GROUP, "g") == 4
        assert broker.count(FIND_COORDINATOR) == 2
        cluster.forget_coordinator(CoordinatorKind.GROUP, "g")
        assert await cluster.coordinator(CoordinatorKind.GROUP, "g") == 4
        assert await cluster.coordinator(CoordinatorKind.TXN, "g") == 4
        assert broker.count(FIND_COORDINATOR) == 4
        kinds = [asked.key_type for key, _, asked in broker.asked if key == FIND_COORDINATOR]
        assert kinds == [0, 0, 0, 1]


@pytest.mark.real_loop
async def test_a_lane_is_a_connection_of_its_own() -> None:
    async with ScriptedBroker() as broker, connected(broker) as cluster:
        await cluster.refresh()
        await cluster.versions(0)
        before = broker.connections
        await cluster.versions(0)
        assert broker.connections == before
        await cluster.versions(0, ConnectionLane.COORDINATION)
        assert broker.connections == before + 1


@pytest.mark.real_loop
async def test_a_ready_made_body_gets_a_header_and_its_answer_comes_back_as_bytes() -> None:
    async with ScriptedBroker() as broker, connected(broker, client_id="me") as cluster:
        await cluster.refresh()
        frame = await cluster.ask_bytes(0, METADATA, 1, [b"\0\0", b"\0\0"])
        link = cluster.link(0)
        assert link is not None
        assert link.read(METADATA, 1, frame).controller_id == 0
        assert broker.asked[-1][:2] == (METADATA, 1)
