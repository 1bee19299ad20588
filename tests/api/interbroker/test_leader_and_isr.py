"""LeaderAndIsr, as a broker takes it."""

from __future__ import annotations

import pytest

from ottla.api.interbroker.leader_and_isr import API
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerEpoch, ControllerEpoch, TopicPartition
from ottla.store import paths
from ottla.store.nodes import ConfigNode
from tests.api.handler_client import ask
from tests.controller.transcript import topic_id
from tests.fakes.control_plane import control_plane

T0 = TopicPartition("t", 0)


def asked(controller_epoch: int = 5, broker_epoch: int = -1) -> dict[str, object]:
    state = {
        "partition_index": 0,
        "controller_epoch": controller_epoch,
        "leader": 1,
        "leader_epoch": 3,
        "isr": [1, 2],
        "partition_epoch": 8,
        "replicas": [1, 2],
        "adding_replicas": [],
        "removing_replicas": [],
        "is_new": True,
    }
    return {
        "controller_id": 1,
        "controller_epoch": controller_epoch,
        "broker_epoch": broker_epoch,
        "topic_states": [
            {"topic_name": "t", "topic_id": topic_id("t"), "partition_states": [state]}
        ],
        "live_leaders": [],
    }


@pytest.mark.spec("CTL-37")
@pytest.mark.parametrize("version", API.versions)
async def test_a_replica_becomes_what_it_is_told_to_be(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await ask(one, API, asked(), version)
        assert said.error_code is ErrorCode.none
        (topic,) = said.topics
        assert topic.topic_id == topic_id("t")
        assert [(e.partition_index, e.error_code) for e in topic.partition_errors] == [
            (0, ErrorCode.none)
        ]
        became = one.held.states[T0]
        assert became.topic_id == topic_id("t")
        assert became.assigned == (1, 3, (1, 2), (1, 2), 8)


async def test_the_settings_of_a_topic_are_known_before_its_first_replica_is_made() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        config = ConfigNode({"retention.ms": "5"}).encode()
        await one.store.create(paths.topic_config("t"), config)
        await ask(one, API, asked())
        assert one.config.topic("t").retention_ms == 5


@pytest.mark.spec("CTL-24", "CTL-35")
async def test_an_old_controller_and_one_that_means_an_earlier_life_are_refused() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        one.held.controller_epoch = ControllerEpoch(6)
        old = await ask(one, API, asked(controller_epoch=5))
        assert old.error_code is ErrorCode.stale_controller_epoch
        [refused] = old.topics
        assert refused.topic_id == topic_id("t")
        assert [e.error_code for e in refused.partition_errors] == [old.error_code]
        one.held.broker_epoch = BrokerEpoch(50)
        former = await ask(one, API, asked(controller_epoch=6, broker_epoch=49))
        assert former.error_code is ErrorCode.stale_broker_epoch
        assert one.held.states == {}


def test_it_is_for_brokers_only() -> None:
    assert API.between_brokers
