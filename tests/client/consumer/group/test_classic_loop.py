from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.cluster import ConnectionLane
from ottla.client.consumer import subscribing
from ottla.client.consumer.errors import CommitFailed
from ottla.client.consumer.group import offset_commits
from ottla.client.consumer.group.subscription_codec import decode_subscription, encode_assignment
from ottla.client.errors import Fenced, KafkaError
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.client.consumer.group.recording_listener import RecordingListener
from tests.client.consumer.scripted import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    Rig,
    commits,
    committed,
    refused,
    view,
)

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


class Group:
    """A coordinator with one real member: each share of `shares` is a generation."""

    def __init__(self, rig: Rig, *shares: tuple[TopicPartition, ...], leads: bool = False) -> None:
        self.rig = rig
        self.shares = list(shares)
        self.generation = 0
        self.leads = leads
        self.diary = RecordingListener()
        self.beat = ErrorCode.none
        rig.cluster.script[JOIN_GROUP] = self.join
        rig.cluster.script[SYNC_GROUP] = self.sync
        rig.cluster.script[HEARTBEAT] = lambda _: refused(self.beat)
        rig.cluster.script[LEAVE_GROUP] = refused(ErrorCode.none)

    def join(self, fields: Any) -> Any:
        self.generation += 1
        self.beat = ErrorCode.none
        me = {"member_id": "me", "group_instance_id": None}
        members = [SimpleNamespace(**me, metadata=fields["protocols"][0]["metadata"])]
        return SimpleNamespace(
            error_code=ErrorCode.none,
            generation_id=self.generation,
            protocol_name=fields["protocols"][0]["name"],
            leader="me" if self.leads else "other",
            skip_assignment=False,
            member_id="me",
            members=members if self.leads else [],
        )

    def sync(self, fields: Any) -> Any:
        if self.leads:
            (mine,) = fields["assignments"]
            return SimpleNamespace(error_code=ErrorCode.none, assignment=mine["assignment"])
        share = self.shares[min(self.generation, len(self.shares)) - 1]
        return SimpleNamespace(error_code=ErrorCode.none, assignment=encode_assignment(share))

    def subscribe(self) -> None:
        subscribing.subscribe(self.rig.core, ["t"], None, self.diary)

    async def has(self, *partitions: TopicPartition) -> None:
        await self.rig.until(lambda: self.rig.core.subscriptions.assigned == set(partitions))

    async def generation_is(self, generation: int) -> None:
        core = self.rig.core
        await self.rig.until(
            lambda: core.group.metadata.generation_id == generation and core.gate.is_quiet
        )


def rig(**options: Any) -> Rig:
    return Rig(group_id="g", **{"partition_assignment_strategy": "range", **options})


@pytest.mark.spec("CON-07", "CON-19", "CON-21", "CON-22", "CON-23")
async def test_a_member_joins_when_first_polled_and_heartbeats_from_then_on() -> None:
    site = rig(heartbeat_interval_ms=3_000)
    group = Group(site, (ONE,))
    async with site.run():
        group.subscribe()
        await asyncio.sleep(100)
        assert site.cluster.asked == [], "nobody has polled"
        await group.has(ONE)
        before = site.cluster.times(HEARTBEAT)
        await asyncio.sleep(30)
        assert 9 <= site.cluster.times(HEARTBEAT) - before <= 10
    lanes = {asked.key: asked.lane for asked in site.cluster.asked}
    assert lanes[JOIN_GROUP] is ConnectionLane.JOIN, "commits must not wait behind it"
    assert lanes[HEARTBEAT] is ConnectionLane.COORDINATION
    assert group.diary.pages == ["assigned t-0"]


@pytest.mark.spec("CON-20", "CON-24", "CON-27", "CON-42")
async def test_an_eager_member_commits_and_gives_up_everything_at_its_next_poll() -> None:
    site = rig()
    group = Group(site, (ONE, TWO), (TWO,))
    async with site.run() as core:
        group.subscribe()
        await group.has(ONE, TWO)
        await site.until(lambda: len(core.subscriptions.positions()) == 2)
        group.beat = ErrorCode.rebalance_in_progress
        commits_before = site.cluster.times(OFFSET_COMMIT)
        await asyncio.sleep(60)
        assert group.generation == 1, "it rejoins when it is polled, not before"
        assert site.cluster.times(HEARTBEAT) > 15, "and heartbeats until then"
        await group.has(TWO)
        assert site.cluster.times(OFFSET_COMMIT) > commits_before
    assert group.diary.pages == ["assigned t-0,t-1", "revoked t-0,t-1", "assigned t-1"]
    order = [asked.key for asked in site.cluster.asked]
    last_join = len(order) - 1 - order[::-1].index(JOIN_GROUP)
    assert OFFSET_COMMIT in order[:last_join], "first the commit, then the join"


@pytest.mark.spec("CON-27")
async def test_a_cooperative_member_keeps_what_stays_and_joins_again_for_what_goes() -> None:
    site = rig(partition_assignment_strategy="cooperative-sticky")
    group = Group(site, (ONE, TWO), (TWO,), (TWO,))
    async with site.run():
        group.subscribe()
        await group.has(ONE, TWO)
        group.beat = ErrorCode.rebalance_in_progress
        await asyncio.sleep(10)
        await group.has(TWO)
        await group.generation_is(3)
    assert group.diary.pages == ["assigned t-0,t-1", "revoked t-0", "assigned", "assigned"]
    told = decode_subscription(site.cluster.last(JOIN_GROUP)["protocols"][0]["metadata"])
    assert (told.owned, told.generation) == ((TWO,), 2)


@pytest.mark.spec("CON-28")
@pytest.mark.parametrize("code", [ErrorCode.unknown_member_id, ErrorCode.illegal_generation])
async def test_a_member_the_group_forgot_has_lost_its_partitions(code: ErrorCode) -> None:
    site = rig()
    group = Group(site, (ONE,))
    async with site.run() as core:
        group.subscribe()
        await group.has(ONE)
        group.beat = code
        await asyncio.sleep(10)
        with pytest.raises(CommitFailed):
            await offset_commits.commit(core, {ONE: 1}, 1_000)
        await group.generation_is(2)
    assert group.diary.pages == ["assigned t-0", "lost t-0", "assigned t-0"]
    ids = [a.fields["member_id"] for a in site.cluster.asked if a.key == JOIN_GROUP]
    assert ids == ["", ""]


@pytest.mark.spec("CON-28", "CON-19")
async def test_joining_gets_over_everything_that_passes() -> None:
    site = rig()
    group = Group(site, (ONE,))
    given = SimpleNamespace(error_code=ErrorCode.member_id_required, member_id="given")
    site.cluster.script[JOIN_GROUP] = [
        ConnectionError("gone"),
        refused(ErrorCode.coordinator_load_in_progress),
        refused(ErrorCode.not_coordinator),
        given,
        group.join,
        group.join,
    ]
    site.cluster.script[SYNC_GROUP] = [refused(ErrorCode.rebalance_in_progress), group.sync]
    async with site.run():
        group.subscribe()
        await group.has(ONE)
    assert site.cluster.forgotten == 2
    ids = [a.fields["member_id"] for a in site.cluster.asked if a.key == JOIN_GROUP]
    assert ids == ["", "", "", "", "given", "me"]


async def test_what_does_not_pass_is_raised_by_every_poll() -> None:
    site = rig()
    group = Group(site, (ONE,))
    site.cluster.script[JOIN_GROUP] = refused(ErrorCode.group_authorization_failed)
    async with site.run():
        group.subscribe()
        for _ in range(3):
            with pytest.raises(KafkaError) as caught:
                await site.until(lambda: False)
            assert caught.value.code is ErrorCode.group_authorization_failed


async def test_a_member_that_was_replaced_by_its_namesake_is_told() -> None:
    site = rig(group_instance_id="name")
    group = Group(site, (ONE,))
    async with site.run():
        group.subscribe()
        await group.has(ONE)
        group.beat = ErrorCode.fenced_instance_id
        await asyncio.sleep(10)
        with pytest.raises(Fenced):
            await site.until(lambda: False)


@pytest.mark.spec("CON-25", "CFG-118")
async def test_a_member_that_is_not_polled_leaves_and_comes_back() -> None:
    site = rig(max_poll_interval_ms=60_000)
    group = Group(site, (ONE,))
    async with site.run():
        group.subscribe()
        await group.has(ONE)
        await site.poll(600)
        assert site.cluster.times(LEAVE_GROUP) == 0, "a poll may take as long as it likes"
        await asyncio.sleep(59)
        assert site.cluster.times(LEAVE_GROUP) == 0
        await asyncio.sleep(5)
        assert site.cluster.times(LEAVE_GROUP) == 1
        beats = site.cluster.times(HEARTBEAT)
        await asyncio.sleep(60)
        assert site.cluster.times(HEARTBEAT) == beats
        await group.generation_is(2)
    assert group.diary.pages == ["assigned t-0", "lost t-0", "assigned t-0"]


async def test_heartbeats_that_get_lost_find_the_coordinator_anew() -> None:
    site = rig()
    group = Group(site, (ONE,))
    async with site.run():
        group.subscribe()
        await group.has(ONE)
        site.cluster.script[HEARTBEAT] = [
            ConnectionError("gone"),
            refused(ErrorCode.not_coordinator),
            *[refused(ErrorCode.none)] * 9,
        ]
        await asyncio.sleep(12)
        assert site.cluster.forgotten == 2
        assert group.generation == 1


@pytest.mark.spec("CON-21", "CON-30")
async def test_a_leader_deals_out_anew_when_topics_grow() -> None:
    site = rig(metadata_max_age_ms=5_000)
    group = Group(site, leads=True)
    async with site.run():
        group.subscribe()
        await group.has(ONE, TWO)
        site.cluster.next_views = [view({"t": 3})]
        await asyncio.sleep(6)
        await group.has(ONE, TWO, TopicPartition("t", 2))


@pytest.mark.spec("CON-02")
async def test_another_subscription_is_told_to_the_group() -> None:
    site = Rig({"t": 2, "u": 1}, group_id="g", partition_assignment_strategy="range")
    group = Group(site, (ONE,))
    async with site.run() as core:
        group.subscribe()
        await group.has(ONE)
        subscribing.subscribe(core, ["u"], None, group.diary)
        await group.generation_is(2)
        told = decode_subscription(site.cluster.last(JOIN_GROUP)["protocols"][0]["metadata"])
        assert told.topics == ("u",)


@pytest.mark.spec("CON-04", "CON-51")
async def test_leaving_commits_tells_the_listener_and_the_group() -> None:
    site = rig()
    site.cluster.script[9] = committed({ONE: (4, -1)})
    group = Group(site, (ONE,))
    async with site.run() as core:
        group.subscribe()
        await group.has(ONE)
        await site.until(lambda: bool(core.subscriptions.positions()))
        await subscribing.unsubscribe(core)
    assert site.cluster.last(LEAVE_GROUP)["members"][0]["member_id"] == "me"
    assert group.diary.pages == ["assigned t-0", "revoked t-0"]
    sent = site.cluster.last(OFFSET_COMMIT)
    assert sent["topics"][0]["partitions"][0]["committed_offset"] == 4
    assert (sent["member_id"], sent["generation_id_or_member_epoch"]) == ("me", 1)


async def test_a_commit_refused_because_the_group_moved_on_makes_the_member_join() -> None:
    site = rig(enable_auto_commit=False)
    group = Group(site, (ONE,))
    site.cluster.script[OFFSET_COMMIT] = [
        commits(ErrorCode.rebalance_in_progress),
        commits(ErrorCode.illegal_generation),
    ]
    async with site.run() as core:
        group.subscribe()
        await group.has(ONE)
        for generation in (2, 3):
            with pytest.raises(CommitFailed):
                await offset_commits.commit(core, {ONE: 1}, 1_000)
            await group.generation_is(generation)
    assert [page.split()[0] for page in group.diary.pages] == [
        "assigned", "revoked", "assigned", "lost", "assigned",
    ]  # fmt: skip
