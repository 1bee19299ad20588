"""ListConfigResources."""

from __future__ import annotations

from ottla.api.config_resources import ConfigKind
from ottla.api.list_config_resources import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane


async def test_topics_and_brokers_are_listed_all_or_by_type() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        said = await ask(one, API, {"resource_types": []})
        listed = {(r.resource_type, r.resource_name) for r in said.config_resources}
        assert listed == {
            (ConfigKind.TOPIC, "t"),
            (ConfigKind.BROKER, "1"),
            (ConfigKind.BROKER_LOGGER, "1"),
        }
        said = await ask(one, API, {"resource_types": [ConfigKind.TOPIC]})
        assert [r.resource_name for r in said.config_resources] == ["t"]


async def test_groups_are_listed_that_have_settings_of_their_own() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        changed = {"consumer.session.timeout.ms": "50000"}
        for name in ("h", "g"):
            await one.shared.configs.change_group(name, lambda _: changed)
        said = await ask(one, API, {"resource_types": [ConfigKind.GROUP]})
        assert [r.resource_name for r in said.config_resources] == ["g", "h"]


async def test_the_first_version_lists_client_metrics_of_which_there_are_none() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await ask(one, API, {}, 0)
        assert (said.error_code, said.config_resources) == (ErrorCode.none, ())


async def test_a_type_nobody_knows_is_refused() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await ask(one, API, {"resource_types": [77]})
        assert said.error_code is ErrorCode.unsupported_version
