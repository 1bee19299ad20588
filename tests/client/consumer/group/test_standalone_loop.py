from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.group import offset_commits
from ottla.client.errors import KafkaError
from ottla.model.errors import ErrorCode, UserError
from ottla.model.ids import TopicPartition
from tests.client.consumer.group.recording_listener import RecordingListener
from tests.client.consumer.scripted import Rig, view

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


async def test_a_consumer_without_a_group_reads_all_there_is_and_all_that_comes() -> None:
    rig, diary = Rig({"t": 1}, metadata_max_age_ms=5_000), RecordingListener()
    async with rig.run() as core:
        subscribing.subscribe(core, ["t"], None, diary)
        await rig.until(lambda: core.subscriptions.assigned == {ONE})
        rig.cluster.next_views = [view({"t": 2})]
        await asyncio.sleep(6)
        assert core.subscriptions.assigned == {ONE}, "only inside a poll"
        await rig.until(lambda: core.subscriptions.assigned == {ONE, TWO})
        assert diary.pages == ["assigned t-0", "assigned t-1"]
        with pytest.raises(UserError, match="group_id="):
            offset_commits.commit_async(core, None, None)


async def test_a_topic_that_comes_to_be_is_waited_for_one_that_cannot_is_said() -> None:
    rig = Rig({"other": 1})
    rig.cluster.next_views = [view({"other": 1})] * 3 + [view({"t": 1})]
    async with rig.run() as core:
        subscribing.subscribe(core, ["t"], None, None)
        await rig.until(lambda: core.subscriptions.assigned == {ONE})
    rig = Rig({"other": 1})
    bad = replace(view({}), errors={"t": ErrorCode.topic_authorization_failed})
    rig.cluster.next_views = [bad]
    async with rig.run() as core:
        subscribing.subscribe(core, ["t"], None, None)
        with pytest.raises(KafkaError, match="topic t: topic_authorization_failed"):
            await rig.until(lambda: False)
