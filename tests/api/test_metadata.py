"""Metadata: the brokers, and each topic with its leaders, for every version's habits."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from ottla.api.metadata import API, AUTO_CREATED_MAX
from ottla.api.operations import NOT_ASKED
from ottla.controller.events import NewTopic
from ottla.metadata.cache import DEPARTED_MS
from ottla.metadata.image import BrokerMetadata, Endpoint, PartitionMetadata, Update
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    CONSUMER_OFFSETS,
    NO_TOPIC_ID,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicPartition,
)
from ottla.protocol import wire
from ottla.testing import Broker
from tests.api.allowed import ON_CLUSTER, ON_TOPIC
from tests.api.handler_client import ask
from tests.fakes.control_plane import Node, control_plane, until
from tests.raw_requests import (
    FETCH,
    METADATA,
    Line,
    batch,
    create_topics,
    fetch_fields,
    produced,
)


def fields(*names: str | None, create: bool = False, **more: Any) -> dict[str, Any]:
    topics = [{"name": name, "topic_id": more.pop("topic_id", NO_TOPIC_ID)} for name in names]
    return {
        "topics": topics,
        "allow_auto_topic_creation": create,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
        **more,
    }


def codes(said: Any) -> dict[str | None, ErrorCode]:
    return {topic.name: topic.error_code for topic in said.topics}


async def with_topics(node: Node, *names: str) -> None:
    await node.controller.create_topics([NewTopic(name) for name in names], 5_000)


@pytest.mark.spec("MDC-02", "MDC-03")
@pytest.mark.parametrize("version", API.versions)
async def test_every_version_tells_brokers_topics_and_leaders(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        two = await plane.start(2)
        await until(lambda: len(two.metadata.image.brokers) == 2)
        await with_topics(one, "t")
        await until(lambda: "t" in two.metadata.image.topics)
        said = await ask(two, API, fields("t"), version)
        told = {(b.node_id, b.host, b.port) for b in said.brokers}
        assert told == {(1, "host1", 9092), (2, "host2", 9092)}
        [topic] = said.topics
        [partition] = topic.partitions
        assert (topic.name, topic.error_code) == ("t", ErrorCode.none)
        assert (partition.partition_index, partition.error_code) == (0, ErrorCode.none)
        assert partition.leader_id in (1, 2)
        assert tuple(partition.replica_nodes) == (partition.leader_id,)
        if version >= 1:
            assert said.controller_id == 1
            assert topic.is_internal is False
        if version >= 2:
            assert said.cluster_id == "the-cluster"
        if version >= 7:
            assert partition.leader_epoch == 0
        if version >= 10:
            assert topic.topic_id == one.metadata.image.topics["t"].id


async def test_in_version_0_an_empty_list_means_all_and_later_none() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await with_topics(one, "t", "u")
        assert set(codes(await ask(one, API, fields(), 0))) == {"t", "u"}
        assert codes(await ask(one, API, fields(), 1)) == {}
        everything = {**fields(), "topics": None}
        for version in (1, 13):
            assert set(codes(await ask(one, API, everything, version))) == {"t", "u"}


@pytest.mark.spec("CFG-021")
@pytest.mark.parametrize(
    ("version", "flag", "enabled", "made"),
    [
        (1, False, "true", True),
        (3, False, "true", True),
        (4, False, "true", False),
        (4, True, "true", True),
        (13, True, "true", True),
        (13, True, "false", False),
        (1, True, "false", False),
    ],
)
async def test_a_topic_is_made_where_client_and_broker_allow_it(
    version: int, flag: bool, enabled: str, made: bool
) -> None:
    async with control_plane() as plane:
        one = await plane.start(1, {"auto.create.topics.enable": enabled})
        said = await ask(one, API, fields("fresh", create=flag), version)
        assert ("fresh" in one.metadata.image.topics) is made
        [topic] = said.topics
        if made:
            assert topic.error_code is ErrorCode.none
            assert topic.partitions[0].leader_id == 1, "the reply already names its leader"
        else:
            assert topic.error_code is ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 250, "ä"])
async def test_a_name_no_topic_can_have_is_refused_and_never_made(name: str) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await ask(one, API, fields(name, create=True))
        assert codes(said) == {name: ErrorCode.invalid_topic_exception}


async def test_a_topic_is_found_by_its_id() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await with_topics(one, "t")
        topic_id = one.metadata.image.topics["t"].id
        for name in (None, ""):  # Java leaves it empty
            said = await ask(one, API, fields(name, topic_id=topic_id))
            assert codes(said) == {"t": ErrorCode.none}
        unknown = await ask(one, API, fields(None, topic_id=UUID(int=99)))
        [topic] = unknown.topics
        assert (topic.error_code, topic.name) == (ErrorCode.unknown_topic_id, None)
        assert topic.topic_id == UUID(int=99)


async def test_what_may_be_done_is_told_when_asked() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await with_topics(one, "t")
        plain = await ask(one, API, fields("t"), 10)
        assert plain.topics[0].topic_authorized_operations == NOT_ASKED
        assert plain.cluster_authorized_operations == NOT_ASKED
        asked = fields("t")
        asked["include_topic_authorized_operations"] = True
        asked["include_cluster_authorized_operations"] = True
        full = await ask(one, API, asked, 10)
        assert full.topics[0].topic_authorized_operations == ON_TOPIC
        assert full.cluster_authorized_operations == ON_CLUSTER


@pytest.mark.spec("MDC-02", "MDC-07")
async def test_partitions_without_a_reachable_leader_and_dead_replicas_are_told_as_such() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        brokers = (
            BrokerMetadata(BrokerId(1), {"PLAINTEXT": Endpoint("host1", 9092)}),
            BrokerMetadata(BrokerId(2), {"OTHER": Endpoint("host2", 9092)}),
        )
        leaders = {"t": BrokerId(1), "u": BrokerId(2), "v": BrokerId(-1)}
        replicas = (BrokerId(1), BrokerId(2), BrokerId(3))
        states = [
            (
                TopicPartition(name, 0),
                UUID(int=at + 1),
                PartitionMetadata(leader, LeaderEpoch(5), replicas[:1], replicas, replicas[1:2]),
            )
            for at, (name, leader) in enumerate(leaders.items())
        ]
        one.metadata.apply(Update(BrokerId(1), ControllerEpoch(9), brokers, states))
        said = await ask(one, API, fields(*leaders))
        shown = {topic.name: topic.partitions[0] for topic in said.topics}
        assert {name: (p.error_code, p.leader_id) for name, p in shown.items()} == {
            "t": (ErrorCode.none, 1),
            "u": (ErrorCode.listener_not_found, -1),
            "v": (ErrorCode.leader_not_available, -1),
        }
        assert tuple(shown["t"].offline_replicas) == (2, 3), "a failed disk, and a dead broker"
        assert tuple(shown["t"].isr_nodes) == (1,)
        assert [broker.node_id for broker in said.brokers] == [1]
        other = brokers[1]._replace(endpoints={"PLAINTEXT": Endpoint("host2", 9092)})
        moved = Update(BrokerId(1), ControllerEpoch(9), (brokers[0], other))
        one.metadata.apply(moved)  # of brokers alone, and yet it changes what topics show
        [again] = (await ask(one, API, fields("u"))).topics
        assert again.partitions[0].leader_id == 2


async def test_a_broker_that_just_left_is_listed_beside_the_new_leaders_of_its_partitions() -> None:
    """Otherwise librdkafka forgets these leaders at once, and asks for them a second later."""
    async with control_plane() as plane:
        one = await plane.start(1)
        brokers = [
            BrokerMetadata(BrokerId(id), {"PLAINTEXT": Endpoint(f"host{id}", 9092)})
            for id in (1, 2)
        ]
        replicas = (BrokerId(2), BrokerId(1))
        led = PartitionMetadata(BrokerId(2), LeaderEpoch(5), replicas, replicas)
        elected = led._replace(leader=BrokerId(1), leader_epoch=LeaderEpoch(6), isr=replicas[1:])
        tp, id, epoch = TopicPartition("t", 0), UUID(int=1), ControllerEpoch(9)
        one.metadata.apply(Update(BrokerId(1), epoch, tuple(brokers), [(tp, id, led)]))
        one.metadata.apply(Update(BrokerId(1), epoch, tuple(brokers[:1]), [(tp, id, elected)]))
        said = await ask(one, API, fields("t"))
        assert [(node.node_id, node.host) for node in said.brokers] == [(1, "host1"), (2, "host2")]
        [partition] = said.topics[0].partitions
        assert (partition.leader_id, tuple(partition.offline_replicas)) == (1, (2,))
        for tools in (fields(), {**fields(), "topics": None}):
            assert [node.node_id for node in (await ask(one, API, tools)).brokers] == [1]
        await asyncio.sleep(DEPARTED_MS / 1000)
        assert [node.node_id for node in (await ask(one, API, fields("t"))).brokers] == [1]


async def test_internal_topics_are_marked() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await with_topics(one, "t")
        said = await ask(one, API, fields("t", CONSUMER_OFFSETS))
        marks = {topic.name: topic.is_internal for topic in said.topics}
        assert marks == {"t": False, CONSUMER_OFFSETS: True}


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_are_refused_by_the_versions_that_cannot_answer_them(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await ask(one, API, fields("t", topic_id=UUID(int=9)), version)
        assert codes(said) == {"t": ErrorCode.invalid_request}
        assert said.topics[0].topic_id == UUID(int=9)


async def test_a_topic_that_is_asked_for_twice_is_told_once() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await with_topics(one, "t", "u")
        said = await ask(one, API, fields("t", "u", "t", "nowhere", "nowhere"))
        assert [topic.name for topic in said.topics] == ["t", "u", "nowhere"]
        topic_id = one.metadata.image.topics["t"].id
        both = fields("t")
        both["topics"] += fields(None, topic_id=topic_id)["topics"]
        assert [topic.name for topic in (await ask(one, API, both)).topics] == ["t"]


async def test_one_request_makes_no_more_topics_than_it_may_and_the_next_makes_the_rest() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        names = [f"t{number:03}" for number in range(AUTO_CREATED_MAX + 20)]
        said = codes(await ask(one, API, fields(*names, create=True)))
        assert list(said) == names
        assert [said[name] for name in names[:AUTO_CREATED_MAX]] == (
            [ErrorCode.none] * AUTO_CREATED_MAX
        )
        assert {said[name] for name in names[AUTO_CREATED_MAX:]} == {ErrorCode.leader_not_available}
        assert len(one.metadata.image.topics) == AUTO_CREATED_MAX
        again = codes(await ask(one, API, fields(*names, create=True)))
        assert set(again.values()) == {ErrorCode.none}


def test_a_reply_behind_a_request_that_waits_shows_what_holds_when_it_leaves() -> None:
    """A producer's connection is like that after a broker died: the reply would name the dead."""
    with Broker() as broker:
        address, all_topics = broker.bootstrap_servers, {**fields(), "topics": None}
        with Line(address) as line, Line(address) as other:
            create_topics(line, ["t"])
            line.send_request(FETCH, 11, **{**fetch_fields("t"), "max_wait": 60_000, "rack_id": ""})
            line.send_request(METADATA, 9, **all_topics)
            other.ask(METADATA, 9, **all_topics)  # so that the others have arrived
            create_topics(other, ["u"])
            assert produced(other, "t", batch("v")).error_code is ErrorCode.none
            assert line.receive() is not None
            reply = line.receive()
        assert reply is not None
        assert set(codes(wire.decode_reply(METADATA, 9, memoryview(reply)))) == {"t", "u"}
