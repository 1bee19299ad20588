"""StopReplica, as a broker takes it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ottla.api.interbroker.stop_replica import API, refuse
from ottla.model.errors import ErrorCode
from ottla.model.ids import ControllerEpoch, TopicPartition
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane

ASKED = {
    "controller_id": 1,
    "controller_epoch": 5,
    "broker_epoch": -1,
    "topic_states": [
        {
            "topic_name": "t",
            "partition_states": [
                {"partition_index": 0, "leader_epoch": 3, "delete_partition": False},
                {"partition_index": 1, "leader_epoch": -2, "delete_partition": True},
            ],
        }
    ],
}


@pytest.mark.spec("CTL-37", "CTL-53")
@pytest.mark.parametrize("version", API.versions)
async def test_replicas_stop_and_those_to_be_deleted_are(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await ask(one, API, ASKED, version)
        assert said.error_code is ErrorCode.none
        told = [(e.topic_name, e.partition_index, e.error_code) for e in said.partition_errors]
        assert told == [("t", 0, ErrorCode.none), ("t", 1, ErrorCode.none)]
        assert one.held.deleted == [TopicPartition("t", 1)]


@pytest.mark.spec("CTL-24")
async def test_an_old_controller_is_refused() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        one.held.controller_epoch = ControllerEpoch(6)
        said = await ask(one, API, ASKED)
        assert said.error_code is ErrorCode.stale_controller_epoch
        assert said.partition_errors == ()
        assert one.held.deleted == []


def test_who_may_not_ask_is_told_so_for_every_partition() -> None:
    partition = SimpleNamespace(partition_index=7, leader_epoch=3, delete_partition=True)
    asked = SimpleNamespace(
        topic_states=[SimpleNamespace(topic_name="t", partition_states=[partition])]
    )
    code = ErrorCode.cluster_authorization_failed
    error = {"topic_name": "t", "partition_index": 7, "error_code": code}
    assert refuse(asked, code, None) == {"error_code": code, "partition_errors": [error]}
