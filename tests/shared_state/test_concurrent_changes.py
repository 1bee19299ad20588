"""Two brokers that change the same settings, credentials, quotas or ACLs: no change is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from ottla.api import incremental_alter_configs
from ottla.config.dynamic import DynamicConfig
from ottla.model.ids import BrokerId
from ottla.protocol import wire
from ottla.security.acl import Kind, Operation, Pattern, Permission, Rule
from ottla.security.authorizer import Authorizer
from ottla.security.quotas.client_quotas import ClientQuotas
from ottla.security.quotas.entities import QuotaEntity
from ottla.shared_state.acl_store import AclStore
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.quota_store import QuotaStore
from ottla.shared_state.registration import create_root_nodes
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import ConfigNode
from tests.fakes.control_plane import Node, control_plane, settle

ROUNDS = 20


class Broker:
    """The shared state as one broker sees it, on a session of its own."""

    def __init__(self, ensemble: Ensemble, id: int) -> None:
        dice = Random(id)
        self.store = MemoryStore(ensemble, lambda: asyncio.sleep(dice.random() / 100))
        self.configs = ConfigStore(self.store, DynamicConfig({}), BrokerId(id))
        self.quotas = QuotaStore(self.store, ClientQuotas())
        self.authorizer = Authorizer(in_force=True)
        self.acls = AclStore(self.store, self.authorizer)

    async def start(self) -> None:
        await self.store.start()
        await create_root_nodes(self.store, None, Random(0))
        await self.configs.load()
        await self.acls.load()

    async def stored(self, path: str) -> Mapping[str, str]:
        node = await self.store.get(path)
        assert node is not None, path
        return ConfigNode.decode(node.data).overrides


async def two_brokers() -> tuple[Broker, Broker]:
    ensemble = Ensemble()
    one, two = Broker(ensemble, 1), Broker(ensemble, 2)
    await one.start()
    await two.start()
    return one, two


def adding(name: str) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    return lambda stored: {**stored, name: "5"}


async def both(works: Sequence[Awaitable[Any]]) -> None:
    await asyncio.gather(*works)


@pytest.mark.spec("CTL-12")
@pytest.mark.parametrize("kind", ["topic", "group", "broker", "user"])
async def test_two_brokers_that_change_one_resource_lose_no_change(kind: str) -> None:
    one, two = await two_brokers()

    def change(broker: Broker, name: str) -> Awaitable[None]:
        match kind:
            case "topic":
                return broker.configs.change_topic("t", adding(name))
            case "group":
                return broker.configs.change_group("t", adding(name))
            case "user":
                return broker.configs.change_user("t", adding(name))
        return broker.configs.change_broker(None, adding(name))

    await both(
        [change(broker, f"x.{i}.{n}") for n in range(ROUNDS) for i, broker in ((1, one), (2, two))]
    )
    path = {
        "topic": paths.topic_config("t"),
        "group": paths.group_config("t"),
        "user": paths.user_config("t"),
        "broker": paths.broker_config(None),
    }[kind]
    assert len(await one.stored(path)) == 2 * ROUNDS


@pytest.mark.spec("CTL-12")
async def test_credentials_and_quotas_of_a_user_keep_each_other() -> None:
    one, two = await two_brokers()
    quota = {QuotaEntity("alice"): adding("producer_byte_rate")}
    scram = adding("SCRAM-SHA-256")
    await both([one.configs.change_user("alice", scram), two.quotas.change(quota)])
    path = paths.user_config("alice")
    assert set(await one.stored(path)) == {"producer_byte_rate", "SCRAM-SHA-256"}
    removal = {QuotaEntity("alice"): _without("producer_byte_rate")}
    await both(
        [one.quotas.change(removal), two.configs.change_user("alice", adding("SCRAM-SHA-512"))]
    )
    assert set(await one.stored(path)) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}


@pytest.mark.spec("CTL-12")
async def test_a_user_known_only_by_the_quotas_of_its_clients_can_get_credentials(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    one, two = await two_brokers()
    entity = QuotaEntity("alice", "app")
    await one.quotas.change({entity: adding("consumer_byte_rate")})
    await two.configs.load()
    await two.configs.change_user("alice", adding("SCRAM-SHA-256"))
    assert set(await one.stored(paths.user_config("alice"))) == {"SCRAM-SHA-256"}
    clients = f"{paths.user_config('alice')}/clients/app"
    assert set(await two.stored(clients)) == {"consumer_byte_rate"}
    assert not any("cannot parse settings" in line for line in caplog.messages)


@pytest.mark.spec("CTL-12")
async def test_two_brokers_that_add_acls_of_one_resource_lose_none() -> None:
    one, two = await two_brokers()
    rule = Rule(Kind.TOPIC, "t", Pattern.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)
    rules = [rule._replace(principal=f"User:{number}") for number in range(2 * ROUNDS)]
    await both([(one, two)[n % 2].acls.add([rule]) for n, rule in enumerate(rules)])
    await one.acls._read()
    assert one.authorizer.rules is not None
    assert set(one.authorizer.rules.all) == set(rules)


async def alter_cluster(node: Node, name: str, value: str) -> None:
    """IncrementalAlterConfigs for all brokers, sent to this one."""
    config = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    fields = {"resources": [resource], "validate_only": False}
    api = incremental_alter_configs.API
    frame = wire.encode_request(api.key, 1, 1, "admin", fields)
    reply = await node.answer(frame, {api.key: api})
    answer = wire.decode_reply(api.key, 1, memoryview(reply)[4:])
    assert [item.error_code.name for item in answer.responses] == ["none"]


@pytest.mark.spec("CTL-12")
async def test_brokers_that_alter_settings_of_the_cluster_at_once_keep_each_others() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        await both(
            [
                alter_cluster(one, "log.cleaner.backoff.ms", "20000"),
                alter_cluster(two, "message.max.bytes", "5000000"),
            ]
        )
        await settle()
        assert one.config.cluster == two.config.cluster
        assert set(one.config.cluster) == {"log.cleaner.backoff.ms", "message.max.bytes"}


def _without(name: str) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    return lambda stored: {key: value for key, value in stored.items() if key != name}
