"""All who want to know ask once."""

from __future__ import annotations

import asyncio

import pytest

from tests.client.rig import connected, until
from tests.fakes.scripted_broker import HANG_UP, METADATA, ScriptedBroker

MANY = {f"t{number}": 1 for number in range(20)}


def asked_topics(broker: ScriptedBroker) -> list[list[str] | None]:
    return [
        None if asked.topics is None else sorted(each.name for each in asked.topics)
        for key, _, asked in broker.asked
        if key == METADATA
    ]


@pytest.mark.spec("PRD-50")
@pytest.mark.real_loop
async def test_those_who_ask_together_share_a_question() -> None:
    async with ScriptedBroker(topics=MANY) as broker, connected(broker) as cluster:
        views = await asyncio.gather(*(cluster.refresh([name]) for name in MANY))
        assert len(asked_topics(broker)) <= 2
        for name, view in zip(MANY, views, strict=True):
            assert name in view.topics


@pytest.mark.real_loop
async def test_who_asks_while_a_question_is_under_way_gets_newer_news_than_that() -> None:
    async with ScriptedBroker(topics={"a": 1}) as broker, connected(broker) as cluster:
        await cluster.refresh()
        broker.hold(METADATA)
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(cluster.refresh(["a"]))
            await until(lambda: len(asked_topics(broker)) == 2)
            broker.topics["b"] = 3
            second = tasks.create_task(cluster.refresh(["b"]))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.sleep(0)
            broker.release()
            view = await second
        assert len(view.topics["b"].partitions) == 3
        assert asked_topics(broker)[-1] == ["a", "b"], "what the cancelled one wanted too"


@pytest.mark.real_loop
async def test_all_topics_can_be_asked_for() -> None:
    async with ScriptedBroker(topics=MANY) as broker, connected(broker) as cluster:
        view = await cluster.refresh()
        assert set(view.topics) == set(MANY)
        assert asked_topics(broker) == [None]


@pytest.mark.real_loop
async def test_when_no_broker_answers_each_is_named_with_its_reason() -> None:
    async with ScriptedBroker() as broker, connected(broker) as cluster:
        broker.script(METADATA, HANG_UP)
        with pytest.raises(ConnectionError, match=rf"no metadata from any broker: .*{broker.port}"):
            await cluster.refresh()
        assert set((await cluster.refresh()).topics) == {"t"}


@pytest.mark.real_loop
async def test_another_bootstrap_server_is_asked_when_the_first_does_not_answer() -> None:
    async with ScriptedBroker() as broker, ScriptedBroker() as dead:
        address = dead.address
        await dead.__aexit__(None, None, None)
        async with connected(broker, bootstrap_servers=[address, broker.address]) as cluster:
            assert (await cluster.refresh()).cluster_id == "scripted"


@pytest.mark.spec("CFG-084", "PRD-50")
@pytest.mark.real_loop
async def test_old_news_are_due_to_be_renewed() -> None:
    async with (
        ScriptedBroker() as broker,
        connected(broker, metadata_max_age_ms=20) as cluster,
    ):
        assert cluster.is_due
        await cluster.refresh()
        await until(lambda: cluster.is_due)


@pytest.mark.real_loop
async def test_only_clients_that_may_create_topics_ask_for_it() -> None:
    async with ScriptedBroker() as broker:
        for auto_create in (False, True):
            async with connected(broker, auto_create=auto_create) as cluster:
                await cluster.refresh(["t"])
            assert broker.asked[-1][2].allow_auto_topic_creation is auto_create
