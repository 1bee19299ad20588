"""Settings kept in the store."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.delay.slices import SLICE
from ottla.model.ids import BrokerId
from ottla.security.password_encoder import PasswordEncoder
from ottla.shared_state.config_store import NOTIFICATIONS_RETAINED, ConfigStore
from ottla.shared_state.registration import create_root_nodes
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore, StoreFaults
from ottla.store.nodes import ConfigNode
from ottla.store.port import Session
from tests.fakes.control_plane import settle, until
from tests.fakes.loop_turns import Turns


class Broker:
    """One broker's settings, on a session of its own."""

    def __init__(self, ensemble: Ensemble, id: int) -> None:
        self.store = MemoryStore(ensemble)
        self.config = DynamicConfig({})
        self.configs = ConfigStore(self.store, self.config, BrokerId(id))

    async def start(self, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        await self.store.start()
        await create_root_nodes(self.store, None, Random(0))
        await self.configs.load()
        return tasks.create_task(self.configs.run())


@pytest.mark.spec("CTL-12")
async def test_a_changed_setting_holds_here_at_once_and_soon_everywhere() -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble, 1), Broker(ensemble, 2)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        await one.configs.change_topic("t", lambda stored: {**stored, "retention.ms": "5"})
        assert one.config.topic("t").retention_ms == 5
        await until(lambda: two.config.topic("t").retention_ms == 5)
        await two.configs.change_topic("t", lambda stored: {**stored, "segment.ms": "9"})
        await until(lambda: one.config.topic("t").segment_ms == 9)
        assert one.config.topic("t").retention_ms == 5
        for task in running:
            task.cancel()


async def test_settings_of_many_topics_are_read_in_slices() -> None:
    one = Broker(Ensemble(), 1)
    async with asyncio.TaskGroup() as tasks:
        running = await one.start(tasks)
        await one.configs.change_topic("t2", lambda stored: {**stored, "retention.ms": "5"})
        counted = Turns()
        counted.begin()
        await one.configs.load_topics(f"t{number}" for number in range(10 * SLICE))
        assert counted.end() >= 9
        assert one.config.topic("t2").retention_ms == 5
        running.cancel()


async def test_settings_of_all_brokers_and_of_one_broker_are_kept_apart() -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble, 1), Broker(ensemble, 2)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        await one.configs.change_broker(None, lambda _: {"min.insync.replicas": "2"})
        await one.configs.change_broker(BrokerId(1), lambda _: {"log.cleaner.threads": "3"})
        await until(lambda: two.config.current.min_insync_replicas == 2)
        await settle()
        assert one.config.current.log_cleaner_threads == 3
        assert two.config.current.log_cleaner_threads == 1
        for task in running:
            task.cancel()


async def test_two_who_change_the_same_topic_at_once_lose_nothing() -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble, 1), Broker(ensemble, 2)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        await asyncio.gather(
            one.configs.change_topic("t", lambda stored: {**stored, "retention.ms": "5"}),
            two.configs.change_topic("t", lambda stored: {**stored, "segment.ms": "9"}),
        )
        node = await one.store.get(paths.topic_config("t"))
        assert node is not None
        stored = ConfigNode.decode(node.data).overrides
        assert stored == {"retention.ms": "5", "segment.ms": "9"}
        for task in running:
            task.cancel()


async def test_a_broker_reads_at_its_start_what_was_changed_before() -> None:
    ensemble = Ensemble()
    one, late = Broker(ensemble, 1), Broker(ensemble, 2)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks)]
        await one.configs.change_topic("t", lambda _: {"retention.ms": "5"})
        running.append(await late.start(tasks))
        assert late.config.topic("t").retention_ms == 5
        for task in running:
            task.cancel()


async def test_settings_that_cannot_be_read_are_left_out_and_stop_nobody() -> None:
    one = Broker(Ensemble(), 1)
    async with asyncio.TaskGroup() as tasks:
        await one.store.start()
        await create_root_nodes(one.store, None, Random(0))
        await one.store.create(paths.topic_config("t"), b"{broken")
        await one.configs.load()
        assert one.config.topic_overrides("t") == {}
        running = tasks.create_task(one.configs.run())
        await one.store.create(f"{paths.CONFIG_CHANGES}/config_change_0000000000", b"broken")
        await one.store.create(f"{paths.CONFIG_CHANGES}/something-else")
        await settle()
        await one.configs.change_topic("u", lambda _: {"retention.ms": "5"})
        assert one.config.topic("u").retention_ms == 5
        running.cancel()


@pytest.mark.spec("CTL-23")
async def test_after_an_expired_session_changes_are_heard_again() -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble, 1), Broker(ensemble, 2)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        ensemble.expire(two.store)
        await settle()
        await one.configs.change_topic("t", lambda _: {"retention.ms": "5"})
        await two.store.start()
        await until(lambda: two.config.topic("t").retention_ms == 5)
        await one.configs.change_topic("t", lambda _: {"retention.ms": "6"})
        await until(lambda: two.config.topic("t").retention_ms == 6)
        for task in running:
            task.cancel()


@pytest.mark.spec("CTL-12", "CTL-23")
async def test_after_a_moment_without_contact_changes_are_heard_again() -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble, 1), Broker(ensemble, 2)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        two.store.turn(Session.SUSPENDED)
        await settle()
        await one.configs.change_topic("t", lambda _: {"retention.ms": "5"})
        two.store.reconnect()
        await until(lambda: two.config.topic("t").retention_ms == 5)
        await one.configs.change_topic("t", lambda _: {"retention.ms": "6"})
        await until(lambda: two.config.topic("t").retention_ms == 6)
        for task in running:
            task.cancel()


@pytest.mark.parametrize("seed", range(20))
async def test_every_broker_ends_with_the_last_setting_however_unkind_the_store_is(
    seed: int,
) -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble, 1), Broker(ensemble, 2)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        two.store._faults = StoreFaults(Random(seed), lost_requests=0.2, lost_replies=0.2)
        for number in range(20):
            await one.configs.change_topic("t", lambda _, n=number: {"retention.ms": str(n)})  # type: ignore[misc]
            await asyncio.sleep(0.1)
        await asyncio.sleep(60)
        assert two.config.topic("t").retention_ms == 19
        for task in running:
            task.cancel()


async def test_old_notes_are_tidied_away() -> None:
    one = Broker(Ensemble(), 1)
    async with asyncio.TaskGroup() as tasks:
        running = await one.start(tasks)
        for number in range(NOTIFICATIONS_RETAINED + 5):
            await one.configs.change_topic("t", lambda _, n=number: {"retention.ms": str(n)})  # type: ignore[misc]
        await settle(2_000)
        assert len(await one.store.children(paths.CONFIG_CHANGES)) == NOTIFICATIONS_RETAINED
        running.cancel()


@pytest.mark.parametrize("name", ["billing", "a/b", "..", "100 %", "\0\x1f\uffff", "\N{SNOWMAN}"])
async def test_settings_of_a_group_are_heard_whatever_its_name(name: str) -> None:
    ensemble = Ensemble()
    one, two, late = Broker(ensemble, 1), Broker(ensemble, 2), Broker(ensemble, 3)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        overrides = {"consumer.heartbeat.interval.ms": "7000"}
        await one.configs.change_group(name, lambda _: overrides)
        assert one.config.group(name).consumer_heartbeat_interval_ms == 7_000
        await until(lambda: two.config.group_overrides(name) == overrides)
        running.append(await late.start(tasks))
        assert late.config.group_overrides(name) == overrides
        await two.configs.change_group(name, lambda _: {})
        await until(lambda: not one.config.groups and not late.config.groups)
        for task in running:
            task.cancel()


async def test_passwords_are_encrypted_in_the_store_if_there_is_a_secret() -> None:
    name = "listener.name.tls.ssl.keystore.password"
    ensemble = Ensemble()
    one, two, other = Broker(ensemble, 1), Broker(ensemble, 1), Broker(ensemble, 1)
    one.configs.passwords = encoder("a secret")
    two.configs.passwords = encoder("a newer secret", "a secret")
    other.configs.passwords = encoder("another secret")
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks)]
        changed = {name: "planted", "log.cleaner.threads": "3"}
        await one.configs.change_broker(BrokerId(1), lambda _: changed)
        node = await one.store.get(paths.broker_config(BrokerId(1)))
        assert node is not None
        assert b"planted" not in node.data
        assert one.config.broker == changed
        running += [await two.start(tasks), await other.start(tasks)]
        assert two.config.broker == changed
        assert other.config.broker == {"log.cleaner.threads": "3"}
        # A broker that cannot read a password keeps it as it is.
        await other.configs.change_broker(
            BrokerId(1), lambda stored: {**stored, "log.cleaner.threads": "2"}
        )
        await until(lambda: two.config.broker == {name: "planted", "log.cleaner.threads": "2"})
        for task in running:
            task.cancel()


def encoder(secret: str, old: str = "") -> PasswordEncoder:
    texts = {"password.encoder.secret": secret, "password.encoder.old.secret": old}
    return PasswordEncoder.of(BrokerConfig.parse(texts), Random(1).randbytes)
