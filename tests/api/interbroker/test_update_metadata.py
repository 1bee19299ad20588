"""UpdateMetadata, as a broker takes it."""

from __future__ import annotations

import pytest

from ottla.api.interbroker.update_metadata import API
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from tests.api.handler_client import ask
from tests.controller.transcript import topic_id
from tests.fakes.control_plane import control_plane

T0 = TopicPartition("t", 0)


def asked(leader: int = 2, epoch: int = 5) -> dict[str, object]:
    state = {
        "partition_index": 0,
        "controller_epoch": epoch,
        "leader": leader,
        "leader_epoch": 3,
        "isr": [2],
        "zk_version": 8,
        "replicas": [2, 1],
        "offline_replicas": [1],
    }
    endpoint = {"port": 9, "host": "h", "listener": "OUT", "security_protocol": 0}
    return {
        "controller_id": 2,
        "controller_epoch": epoch,
        "broker_epoch": -1,
        "topic_states": [
            {"topic_name": "t", "topic_id": topic_id("t"), "partition_states": [state]}
        ],
        "live_brokers": [{"id": 2, "endpoints": [endpoint], "rack": "r"}],
    }


@pytest.mark.spec("MDC-01", "MDC-05", "MDC-07", "CTL-37")
@pytest.mark.parametrize("version", API.versions)
async def test_the_image_shows_what_the_controller_said(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await ask(one, API, asked(), version)
        assert said.error_code is ErrorCode.none
        image = one.metadata.image
        assert image.controller_id == 2
        assert image.names[topic_id("t")] == "t"
        partition = image.partition(T0)
        assert partition is not None
        assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 3, (2,))
        assert (partition.replicas, partition.offline, partition.version) == ((2, 1), (1,), 8)
        node = image.node(BrokerId(2), "OUT")
        assert node == (2, "h", 9, "r")


@pytest.mark.spec("MDC-10", "CTL-52")
async def test_a_deleted_topic_is_forgotten_with_its_settings() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await ask(one, API, asked())
        one.config.set_topic("t", {"retention.ms": "5"})
        await ask(one, API, asked(leader=-2))
        assert one.metadata.image.partition(T0) is None
        assert one.config.topic_overrides("t") == {}


@pytest.mark.spec("CTL-24")
async def test_an_old_controller_is_refused() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await ask(one, API, asked(epoch=9))
        said = await ask(one, API, asked(epoch=8))
        assert said.error_code is ErrorCode.stale_controller_epoch
