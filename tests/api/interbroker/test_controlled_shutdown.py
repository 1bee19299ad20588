"""ControlledShutdown, as the controller takes it."""

from __future__ import annotations

import pytest

from ottla.api.interbroker.controlled_shutdown import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane, settle


async def test_the_reply_names_what_the_broker_still_leads() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        await one.controller.create_topics(
            [
                NewTopic("moves", assignment={0: (two.id, one.id)}),
                NewTopic("alone", assignment={0: (two.id,)}),
            ],
            5_000,
        )
        asked = {"broker_id": 2, "broker_epoch": two.registration.epoch}
        said = await ask(one, API, asked)
        assert said.error_code is ErrorCode.none
        assert said.remaining_partitions == ()
        said = await ask(two, API, {"broker_id": 2, "broker_epoch": 0})
        assert said.error_code is ErrorCode.not_controller
        said = await ask(one, API, {"broker_id": 2, "broker_epoch": 0})
        assert said.error_code is ErrorCode.stale_broker_epoch


@pytest.mark.parametrize("version", API.versions)
async def test_a_broker_that_names_no_epoch_may_shut_down(version: int) -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        await one.controller.create_topics([NewTopic("t", assignment={0: (two.id, one.id)})], 5_000)
        said = await ask(one, API, {"broker_id": 2, "broker_epoch": -1}, version)
        assert (said.error_code, said.remaining_partitions) == (ErrorCode.none, ())
