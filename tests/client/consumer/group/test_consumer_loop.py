from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.errors import CommitFailed
from ottla.client.consumer.group import offset_commits
from ottla.client.errors import KafkaError
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.client.consumer.group.recording_listener import RecordingListener
from tests.client.consumer.scripted import (
    MODERN_HEARTBEAT,
    OFFSET_COMMIT,
    Rig,
    commits,
    topic_id,
    view,
)

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


class Group:
    """A coordinator that deals out: `target` is what the member shall have."""

    def __init__(self, rig: Rig, *target: TopicPartition) -> None:
        self.rig = rig
        self.target: Iterable[TopicPartition] = target
        self.epoch = 1
        self.code = ErrorCode.none
        self.diary = RecordingListener()
        rig.cluster.script[MODERN_HEARTBEAT] = self.answer

    def answer(self, fields: Any) -> Any:
        told = [
            SimpleNamespace(topic_id=topic_id(tp.topic), partitions=(tp.partition,))
            for tp in self.target
        ]
        by_id: dict[Any, Any] = {}
        for each in told:
            partition_counts = by_id.setdefault(each.topic_id, each)
            if partition_counts is not each:
                partition_counts.partitions += each.partitions
        code, self.code = self.code, ErrorCode.none
        return SimpleNamespace(
            error_code=code,
            error_message=None,
            member_id=None,
            member_epoch=self.epoch,
            heartbeat_interval=timedelta(seconds=5),
            assignment=SimpleNamespace(topic_partitions=list(by_id.values())),
        )

    def subscribe(self) -> None:
        subscribing.subscribe(self.rig.core, ["t"], None, self.diary)

    async def has(self, *partitions: TopicPartition) -> None:
        await self.rig.until(lambda: self.rig.core.subscriptions.assigned == set(partitions))

    def heartbeats(self) -> list[Any]:
        return [each.fields for each in self.rig.cluster.asked if each.key == MODERN_HEARTBEAT]

    def owned(self) -> list[Any]:
        """What each heartbeat said that the member has; None: nothing new."""
        return [
            None
            if fields["topic_partitions"] is None
            else [index for each in fields["topic_partitions"] for index in each["partitions"]]
            for fields in self.heartbeats()
        ]


def rig(**options: Any) -> Rig:
    return Rig(group_id="g", group_protocol="consumer", **options)


@pytest.mark.spec("CON-07", "CON-23")
async def test_the_first_poll_joins_and_what_comes_is_acknowledged() -> None:
    site = rig()
    group = Group(site, ONE, TWO)
    async with site.run():
        group.subscribe()
        await asyncio.sleep(100)
        assert group.heartbeats() == [], "nobody has polled"
        await group.has(ONE, TWO)
        await asyncio.sleep(21)
    assert group.diary.pages == ["assigned t-0,t-1"]
    assert group.heartbeats()[0]["member_epoch"] == 0
    assert group.owned()[:2] == [[], [0, 1]]
    assert 5 <= len(group.heartbeats()) <= 8, "every five seconds, as the coordinator said"


@pytest.mark.spec("CON-20", "CON-27")
async def test_partitions_change_hands_inside_polls_and_only_those_that_move() -> None:
    site = rig()
    group = Group(site, ONE)
    async with site.run() as core:
        group.subscribe()
        await group.has(ONE)
        await site.until(lambda: bool(core.subscriptions.positions()))
        group.target, group.epoch = (TWO,), 2
        await asyncio.sleep(60)
        assert core.subscriptions.assigned == {ONE}, "not while nobody polls"
        await group.has(TWO)
        await asyncio.sleep(10)
    assert group.diary.pages == ["assigned t-0", "revoked t-0", "assigned t-1"]
    assert [said for said in group.owned() if said is not None][-1] == [1]
    assert site.cluster.last(OFFSET_COMMIT)["generation_id_or_member_epoch"] == 2


@pytest.mark.spec("CON-28")
async def test_a_fenced_member_loses_everything_and_joins_anew() -> None:
    site = rig(enable_auto_commit=False)
    group = Group(site, ONE)
    async with site.run() as core:
        group.subscribe()
        await group.has(ONE)
        site.cluster.script[OFFSET_COMMIT] = [commits(ErrorCode.unknown_member_id)]
        with pytest.raises(CommitFailed):
            await offset_commits.commit(core, {ONE: 1}, 1_000)
        await site.until(lambda: len(group.diary.pages) == 3)
    assert group.diary.pages == ["assigned t-0", "lost t-0", "assigned t-0"]
    assert [each["member_epoch"] for each in group.heartbeats()].count(0) == 2


@pytest.mark.spec("CON-25")
async def test_a_member_that_is_not_polled_leaves_and_comes_back() -> None:
    site = rig(max_poll_interval_ms=60_000)
    group = Group(site, ONE)
    async with site.run():
        group.subscribe()
        await group.has(ONE)
        await asyncio.sleep(70)
        assert group.heartbeats()[-1]["member_epoch"] == -1
        await site.until(lambda: len(group.diary.pages) == 3)
    assert group.diary.pages == ["assigned t-0", "lost t-0", "assigned t-0"]


async def test_what_passes_is_tried_again_what_does_not_is_raised() -> None:
    site = rig()
    group = Group(site, ONE)
    site.cluster.script[MODERN_HEARTBEAT] = [
        ConnectionError("gone"),
        SimpleNamespace(error_code=ErrorCode.not_coordinator, error_message=None),
        SimpleNamespace(error_code=ErrorCode.coordinator_load_in_progress, error_message=None),
        SimpleNamespace(error_code=ErrorCode.unsupported_assignor, error_message="no such"),
        *[group.answer] * 5,
    ]
    async with site.run():
        group.subscribe()
        with pytest.raises(KafkaError, match="no such"):
            await site.until(lambda: False)
        await group.has(ONE)
    assert site.cluster.forgotten == 2


async def test_a_topic_known_by_its_id_only_is_looked_up() -> None:
    site = rig()
    pending_callbacks = TopicPartition("later", 0)
    group = Group(site, pending_callbacks)
    site.cluster.next_views = [view({"t": 2, "later": 1})]
    async with site.run():
        group.subscribe()
        await group.has(pending_callbacks)


@pytest.mark.spec("CON-51")
async def test_closing_says_good_bye() -> None:
    site = rig()
    group = Group(site, ONE)
    async with site.run() as core:
        group.subscribe()
        await group.has(ONE)
        await subscribing.close(core, 1_000)
    assert group.heartbeats()[-1]["member_epoch"] == -1
    assert group.diary.pages == ["assigned t-0", "revoked t-0"]
