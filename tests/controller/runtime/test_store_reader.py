"""What the store holds, as events."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random

import pytest

from ottla.controller.events import LiveBrokersChanged, PartitionsReloaded
from ottla.controller.runtime.controller_election import ControllerTerm
from ottla.controller.runtime.store_reader import StoreReader, new_topic_id
from ottla.controller.state import ControllerState
from ottla.model.clock import WallMs
from ottla.model.ids import BrokerId, ControllerEpoch, TopicPartition
from ottla.shared_state.registration import create_root_nodes
from ottla.store import paths
from ottla.store.changes import BrokersChanged, Change, PartitionsChanged, TopicsChanged
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import BrokerNode, ConfigNode, EndpointNode, StateNode, TopicNode, id_text
from tests.controller.transcript import Actor, topic_id
from tests.fakes.control_plane import settle

T0 = TopicPartition("t", 0)
TERM = ControllerTerm(ControllerEpoch(3), 8)
ME = ControllerState(BrokerId(1))


async def opened() -> tuple[MemoryStore, StoreReader, list[Change]]:
    store, changes = MemoryStore(Ensemble()), list[Change]()
    await store.start()
    await create_root_nodes(store, None, Random(0))
    return store, StoreReader(store, changes.append, Random(0)), changes


async def write_topic(store: MemoryStore, name: str) -> None:
    one = BrokerId(1)
    await store.create(paths.topic(name), TopicNode(topic_id(name), {0: (one,)}).encode())
    await store.create(paths.partitions(name))
    await store.create(paths.partition(TopicPartition(name, 0)))
    state = StateNode(one, 2, (one,), 1)  # type: ignore[arg-type]
    await store.create(paths.partition_state(TopicPartition(name, 0)), state.encode())


@pytest.mark.spec("CTL-17", "CTL-32")
async def test_a_new_controller_reads_everything_there_is() -> None:
    store, reader, _ = await opened()
    node = BrokerNode((EndpointNode("PLAINTEXT", "h", 9),), WallMs(0), "r")
    await store.create(paths.broker(BrokerId(1)), node.encode(), ephemeral=True)
    await write_topic(store, "t")
    unclean = ConfigNode({"unclean.leader.election.enable": "true"})
    await store.create(paths.topic_config("t"), unclean.encode())
    await store.create(paths.delete_topic("t"))
    await store.create(f"{paths.ISR_CHANGES}/isr_change_1")
    seen = await reader.read_all(TERM)
    assert (seen.epoch, seen.epoch_version) == (3, 8)
    assert seen.brokers[BrokerId(1)].rack == "r"
    leadership = seen.topics["t"].partitions[0].leadership
    assert leadership is not None
    assert (leadership.leader, leadership.leader_epoch, leadership.version) == (1, 2, 0)
    assert seen.deletions == {"t"}
    assert seen.unclean == {"t": True}
    assert seen.notifications == (f"{paths.ISR_CHANGES}/isr_change_1",)
    assert seen.ids == {}


@pytest.mark.spec("CTL-17", "CTL-65")
async def test_a_new_controller_does_not_wait_for_each_of_many_topics_in_turn() -> None:
    store, _, _ = await opened()
    for number in range(500):
        await write_topic(store, f"t{number}")
    distant = MemoryStore(store._ensemble, partial(asyncio.sleep, 0.010))
    await distant.start()
    started = asyncio.get_running_loop().time()
    seen = await StoreReader(distant, lambda _: None, Random(0)).read_all(TERM)
    assert len(seen.topics) == 500
    assert asyncio.get_running_loop().time() - started < 0.250, "a reply takes 10 ms"


@pytest.mark.spec("CTL-18", "CTL-77")
async def test_what_was_read_is_watched_and_never_watched_twice() -> None:
    store, reader, changes = await opened()
    await write_topic(store, "t")
    await reader.read_all(TERM)
    await reader.read_all(TERM)
    await write_topic(store, "u")
    await settle()
    assert changes == [TopicsChanged()]
    node = TopicNode(topic_id("t"), {0: (BrokerId(1),), 1: (BrokerId(1),)})
    await store.set(paths.topic("t"), node.encode())
    await settle()
    assert changes == [TopicsChanged(), PartitionsChanged("t")]


@pytest.mark.spec("CTL-42", "CTL-47")
async def test_a_change_becomes_the_event_of_what_is_there_now() -> None:
    store, reader, _ = await opened()
    node = BrokerNode((), WallMs(0))
    await store.create(paths.broker(BrokerId(2)), node.encode(), ephemeral=True)
    seen = await reader.event(BrokersChanged(), ME)
    assert isinstance(seen, LiveBrokersChanged)
    assert list(seen.brokers) == [2]
    assert await reader.event(PartitionsChanged("gone"), ME) is None
    await write_topic(store, "t")
    actor = Actor()
    actor.run("elected 1 1 t-0=1/1/1")
    grown = await reader.event(PartitionsChanged("t"), actor.state)
    assert isinstance(grown, PartitionsReloaded)


@pytest.mark.spec("CTL-49")
async def test_a_change_that_was_quicker_than_the_watch_is_told() -> None:
    store, reader, changes = await opened()
    await write_topic(store, "t")
    await reader.watch_topics({"t": 0})
    assert changes == []
    reader.forget_watches()
    await store.set(paths.topic("t"), TopicNode(topic_id("t"), {}).encode())
    await settle()
    changes.clear()
    await reader.watch_topics({"t": 0})
    assert changes == [PartitionsChanged("t")]


async def test_a_topic_written_without_an_id_is_given_one() -> None:
    store, reader, _ = await opened()
    await store.create(paths.topic("t"), b'{"version":1,"partitions":{"0":[1]}}')
    seen = await reader.topics([])
    assert set(seen.ids) == {"t"}


async def test_one_broken_node_does_not_hide_the_others() -> None:
    store, reader, _ = await opened()
    for name in ("t", "u", "v"):
        await write_topic(store, name)
    await store.set(paths.topic("t"), b"{broken")
    await store.set(paths.partition_state(TopicPartition("u", 0)), b"{broken")
    await store.create(paths.topic_config("v"), b"{broken")
    await store.create(paths.broker(BrokerId(7)), b"{broken", ephemeral=True)
    seen = await reader.read_all(TERM)
    assert sorted(seen.topics) == ["u", "v"]
    assert seen.brokers == {}
    unreadable = seen.topics["u"].partitions[0].leadership
    assert unreadable is not None
    assert (unreadable.leader, unreadable.isr) == (-1, ()), "nobody may lead by chance"


def test_topic_ids_never_read_like_an_option() -> None:
    dice = Random(5)
    ids = [new_topic_id(dice) for _ in range(2_000)]
    assert len(set(ids)) == len(ids)
    assert not any(id_text(id).startswith("-") for id in ids)
    assert {id.version for id in ids} == {4}
