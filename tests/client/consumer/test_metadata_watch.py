from __future__ import annotations

import asyncio
import re

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.position.partition_position import PositionPhase
from ottla.model.ids import TopicPartition
from tests.client.consumer.scripted import Rig, view

HERE = TopicPartition("t", 0)


@pytest.mark.spec("CFG-084", "CON-17")
async def test_the_cluster_is_looked_at_when_asked_and_when_it_grew_old() -> None:
    rig = Rig(metadata_max_age_ms=60_000)
    async with rig.run() as core:
        await asyncio.sleep(59)
        assert rig.cluster.refreshed == []
        await asyncio.sleep(2)
        assert len(rig.cluster.refreshed) == 1
        core.watch.request_refresh()
        core.watch.request_refresh()
        await asyncio.sleep(1)
        assert len(rig.cluster.refreshed) == 2


async def test_only_what_is_read_is_asked_about_a_pattern_asks_about_all() -> None:
    rig = Rig()
    subscribing.assign(rig.core, [HERE])
    await rig.core.watch.refresh(["also"])
    assert rig.cluster.refreshed == [frozenset({"t", "also"})]
    rig = Rig()
    subscribing.subscribe(rig.core, None, "x", None)
    await rig.core.watch.refresh()
    assert rig.cluster.refreshed == [None]


@pytest.mark.spec("CON-01")
async def test_a_pattern_leaves_internal_topics_alone() -> None:
    rig = Rig({"__consumer_offsets": 1, "orders": 1})
    topics = rig.cluster.metadata.topics
    internal = topics["__consumer_offsets"]._replace(internal=True)
    object.__setattr__(rig.cluster.metadata, "topics", {**topics, "__consumer_offsets": internal})
    rig.core.subscriptions.subscribe_pattern(re.compile("."))
    await rig.core.watch.refresh()
    assert rig.core.subscriptions.topics == {"orders"}


async def test_positions_hear_of_new_leaders() -> None:
    rig = Rig()
    subscribing.assign(rig.core, [HERE])
    part = rig.core.subscriptions[HERE]
    part.seek(5)
    part.epoch = 1
    part.on_leader_epoch(1)
    rig.cluster.next_views = [view({"t": 2}, epoch=2)]
    await rig.core.watch.refresh()
    assert part.phase is PositionPhase.UNCHECKED


async def test_the_leader_of_a_group_notices_when_topics_have_grown() -> None:
    rig = Rig()
    watch = rig.core.watch
    assert await watch.partition_counts(["t"]) == {"t": 2}
    assert not watch.has_grown
    rig.cluster.next_views = [view({"t": 3})]
    await watch.refresh()
    assert watch.has_grown
    watch.forget_group()
    assert not watch.has_grown
    assert await watch.partition_counts(["t", "gone"]) == {"t": 3}
