"""What handlers call: consumer groups on a real log, with patterns resolved off the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.coordinator.group.consumer import assignors
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.heartbeat import HeartbeatRequest
from ottla.coordinator.group.consumer.records import EpochSet
from ottla.coordinator.group.consumer.service import ATTEMPTS
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS
from ottla.coordinator.group.service import Fetcher
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from tests.coordinator.group_coordinator import OFFSETS, coordinating

JOINING = HeartbeatRequest("a", 0, topics=("t",), rebalance_timeout_ms=60_000, owned=NO_PARTS)


async def test_a_member_joins_is_described_and_leaves() -> None:
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        consumer = made.groups.consumer
        reply = await consumer.heartbeat("g", JOINING)
        assert (reply.epoch, len(reply.assignment or ())) == (1, 1)
        shown = await consumer.describe("g")
        assert (shown.state, shown.epoch) == ("Stable", 1)
        [listed] = made.groups.overviews(set(), {"consumer"})
        assert listed.state == "Stable"
        assert await made.groups.describe("g") is None
        await consumer.heartbeat("g", HeartbeatRequest("a", -1))
        assert (await consumer.describe("g")).state == "Empty"
        await made.groups.delete("g")
        with pytest.raises(KafkaError):
            await consumer.describe("g")


async def test_a_group_must_have_a_name_and_be_of_this_kind() -> None:
    async with coordinating() as made:
        await made.commit(5, "simple")
        consumer = made.groups.consumer
        calls = [
            (consumer.heartbeat("", JOINING), ErrorCode.invalid_group_id),
            (consumer.describe(""), ErrorCode.invalid_group_id),
            (consumer.describe("unknown"), ErrorCode.group_id_not_found),
            (consumer.describe("simple"), ErrorCode.group_id_not_found),
        ]
        for call, code in calls:
            with pytest.raises(KafkaError) as refused:
                await call
            assert refused.value.code is code


async def test_a_pattern_is_resolved_and_a_bad_one_refused() -> None:
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        consumer = made.groups.consumer
        by_pattern = JOINING._replace(topics=(), pattern="t.*")
        assert len((await consumer.heartbeat("g", by_pattern)).assignment or ()) == 1
        with pytest.raises(KafkaError) as refused:
            await consumer.heartbeat("g", by_pattern._replace(pattern="("))
        assert refused.value.code is ErrorCode.invalid_regular_expression


async def test_a_group_is_told_when_its_topics_change() -> None:
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        consumer = made.groups.consumer
        await consumer.heartbeat("g", JOINING)
        await consumer.heartbeat("g", HeartbeatRequest("a", 1))
        await made.side.lead(TopicPartition("t", 1))
        assert (await consumer.heartbeat("g", HeartbeatRequest("a", 1))).epoch == 1
        made.groups.topics_changed({"t"}, [])
        reply = await consumer.heartbeat("g", HeartbeatRequest("a", 1))
        assert (reply.epoch, len(reply.assignment or ())) == (2, 2)


async def test_members_fetch_offsets_in_their_epoch() -> None:
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        await made.groups.consumer.heartbeat("g", JOINING)
        await made.groups.fetch("g", None, stable=False, fetcher=Fetcher("a", 1))
        with pytest.raises(KafkaError) as refused:
            await made.groups.fetch("g", None, stable=False, fetcher=Fetcher("a", 7))
        assert refused.value.code is ErrorCode.stale_member_epoch


async def test_a_group_goes_on_where_its_partition_is_led_next() -> None:
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        consumer = made.groups.consumer
        await consumer.heartbeat("g", JOINING)
        made.runtime.on_unlead(OFFSETS)
        with pytest.raises(KafkaError) as refused:
            await consumer.heartbeat("g", HeartbeatRequest("a", 1))
        assert refused.value.code is ErrorCode.not_coordinator
        made.runtime.on_lead(made.side.hosted.get(OFFSETS))
        await made.side.settle()
        assert (await consumer.heartbeat("g", HeartbeatRequest("a", 1))).epoch == 1


async def test_a_large_assignment_is_computed_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignors, "LARGE", 0)
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        pool = type(made.side.hosted.environment.thread_pool)
        computed: list[object] = []
        plain = pool.run

        async def run_noted(self: Any, work: Any, *arguments: Any) -> Any:
            computed.append(work)
            return await plain(self, work, *arguments)

        monkeypatch.setattr(pool, "run", run_noted)
        joined = await made.groups.consumer.heartbeat("g", JOINING)
        assert (joined.epoch, len(joined.assignment or ())) == (1, 1)
        assert len(computed) == 1
        await made.groups.consumer.heartbeat("g", HeartbeatRequest("a", 1))
        assert len(computed) == 1, "nothing has changed"


async def test_members_that_join_during_a_large_assignment_take_part_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assignors, "LARGE", 0)
    async with coordinating() as made:
        for partition in range(3):
            await made.side.lead(TopicPartition("t", partition))
        consumer = made.groups.consumer
        names = ("a", "b", "c")
        joined = await asyncio.gather(
            *(consumer.heartbeat("g", JOINING._replace(member_id=name)) for name in names)
        )
        assert sorted(reply.epoch for reply in joined) == [1, 2, 3]
        targets = [member.target for member in (await consumer.describe("g")).members]
        assert [len(target) for target in targets] == [1, 1, 1]
        assert len(frozenset().union(*targets)) == 3


MANY = JOINING._replace(topics=("t", *(f"absent-{number}" for number in range(12_000))))


class NotedPool:
    """What groups give the thread pool, and what happens in the meantime."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pool: Any) -> None:
        self.work: list[object] = []
        self.meanwhile: list[Callable[[], object]] = []
        """One after each piece of work, before its result is used."""
        plain = type(pool).run

        async def run_noted(of: Any, work: Any, *arguments: Any) -> Any:
            result = await plain(of, work, *arguments)
            if not getattr(work, "__module__", "").startswith("ottla.coordinator.group."):
                return result  # a flush of the log, or other work of the broker
            self.work.append(work)
            if self.meanwhile:
                self.meanwhile.pop(0)()
            return result

        monkeypatch.setattr(type(pool), "run", run_noted)


async def test_a_heartbeat_that_concerns_many_topics_is_decided_off_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        pool = NotedPool(monkeypatch, made.side.hosted.environment.thread_pool)
        consumer = made.groups.consumer
        joined = await consumer.heartbeat("g", MANY)
        assert (joined.epoch, len(joined.assignment or ())) == (1, 1)
        assert len(pool.work) == 1
        stays = await consumer.heartbeat("g", HeartbeatRequest("a", 1))
        assert (stays.epoch, len(pool.work)) == (1, 1), "nothing has changed"
        [member] = (await consumer.describe("g")).members
        assert member.member.profile.topics == tuple(sorted(MANY.topics or ()))


async def test_a_group_that_changes_meanwhile_is_decided_on_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with coordinating() as made:
        for partition in range(2):
            await made.side.lead(TopicPartition("t", partition))
        consumer = made.groups.consumer
        pool = NotedPool(monkeypatch, made.side.hosted.environment.thread_pool)

        def join() -> None:
            joining = consumer.heartbeat("g", JOINING._replace(member_id="b"))
            with pytest.raises(StopIteration):
                joining.send(None)

        pool.meanwhile.append(join)
        reply = await consumer.heartbeat("g", MANY)
        assert (reply.epoch, len(pool.work)) == (2, 2), "decided again, after the other member"
        targets = [member.target for member in (await consumer.describe("g")).members]
        assert [len(target) for target in targets] == [1, 1]


async def test_a_group_that_never_stays_the_same_is_decided_on_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        consumer = made.groups.consumer
        await consumer.heartbeat("g", JOINING._replace(member_id="b"))
        pool = NotedPool(monkeypatch, made.side.hosted.environment.thread_pool)
        group = made.shard.groups["g"]
        assert isinstance(group, ConsumerGroup)

        def change() -> None:
            group.apply(EpochSet("g", group.epoch))

        pool.meanwhile += [change] * ATTEMPTS
        reply = await consumer.heartbeat("g", MANY)
        assert (reply.epoch, len(pool.work)) == (2, ATTEMPTS)


async def test_a_topic_that_changes_meanwhile_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with coordinating() as made:
        await made.side.lead(TopicPartition("t", 0))
        consumer = made.groups.consumer
        await consumer.heartbeat("g", MANY)
        await consumer.heartbeat("g", HeartbeatRequest("a", 1))
        pool = NotedPool(monkeypatch, made.side.hosted.environment.thread_pool)
        pool.meanwhile.append(lambda: made.groups.topics_changed({"t"}, []))
        await consumer.heartbeat("g", MANY._replace(epoch=1, rack_id="r"))
        assert len(pool.work) == 2
        await made.side.lead(TopicPartition("t", 1))
        made.groups.topics_changed({"t"}, [])
        reply = await consumer.heartbeat("g", HeartbeatRequest("a", 1))
        assert (reply.epoch, len(reply.assignment or ())) == (2, 2)
