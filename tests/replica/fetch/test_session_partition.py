"""A follower's session: a fetch costs the leader what has changed, and forgets nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from ottla.config.replication import RACK_AWARE_SELECTOR
from ottla.model.ids import BrokerEpoch, BrokerId, TopicPartition
from ottla.net.broker_link import RawReply
from ottla.protocol.hot.fetch_response import read_fetch_response
from ottla.replica.read import WATERMARK_WAIT_MS
from tests.fakes.data_side import ME, OTHER, TP
from tests.fakes.replica_pair import ReplicaPair, replica_pair

SECOND = TopicPartition("t", 1)
LAG_MS = 30_000
SETTINGS = {"replica.lag.time.max.ms": str(LAG_MS), "replica.fetch.wait.max.ms": "500"}


class Calls:
    count = 0


@contextmanager
def counted_calls(path: str) -> Iterator[Calls]:
    """Calls of Python functions of this project whose file has `path` in its name."""
    calls = Calls()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and path in frame.f_code.co_filename:
            calls.count += 1

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def isr_without_lagging(pair: ReplicaPair) -> frozenset[BrokerId] | None:
    partition = pair.partition(ME)
    return partition.require_leadership().isr_without_lagging(
        leader_end=partition.log.end_offset,
        now_ms=pair.data(ME).clock.mono_ms(),
        lag_max_ms=LAG_MS,
    )


def key_of(index: int) -> TopicPartition:
    return TopicPartition("t" if index < 10 else f"topic-{index // 10}", index % 10)


async def with_partitions(pair: ReplicaPair, count: int) -> None:
    for index in range(count):
        await pair.lead(ME, epoch=0, key=key_of(index))
    await pair.pass_ms(5_000)


async def calls_of_idle_fetches(count: int) -> int:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, count)
        before = len(pair.links[ME].requests)
        with counted_calls("/ottla/") as calls:
            await pair.pass_ms(5_000)
        assert 8 <= len(pair.links[ME].requests) - before <= 12
        return calls.count


@pytest.mark.spec("REP-49")
async def test_fetches_of_idle_partitions_cost_as_much_for_3000_as_for_10() -> None:
    few, many = await calls_of_idle_fetches(10), await calls_of_idle_fetches(3_000)
    assert many <= few * 1.2


@pytest.mark.spec("REP-49")
async def test_only_partitions_that_changed_are_read() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 300)
        read = pair.data(ME).services.topic_metrics.all.total_fetch_requests
        before = read.value
        for index in (3, 250):
            key = key_of(index)
            await pair.data(ME).start_append(b"a", acks=-1, key=key)
            await pair.pass_ms(2_000)
            assert pair.partition(OTHER, key).log.high_watermark == 1
        assert read.value - before <= 20


@pytest.mark.spec("REP-49")
async def test_batches_that_a_leader_receives_together_reach_a_follower_in_one_reply() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 3)
        sizes: list[int] = []

        def note(reply: RawReply) -> RawReply:
            response = read_fetch_response(reply.version, reply.frame)
            sizes.append(sum(len(each.records) > 0 for each in response.partitions))
            return reply

        pair.links[ME].change = note
        for index in range(3):  # one after the other, within one turn of the event loop
            pair.data(ME).start_append(b"a", key=key_of(index))
        await pair.pass_ms(100)
        assert [size for size in sizes if size] == [3]
        for index in range(3):
            assert pair.contents(OTHER, key_of(index)) == pair.contents(ME, key_of(index)) != b""


@pytest.mark.spec("REP-26", "REP-28")
async def test_a_follower_that_was_idle_for_long_is_in_sync_until_it_really_falls_behind() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 2)
        await pair.pass_ms(10 * LAG_MS)
        leader = pair.data(ME)
        pair.links[ME].cut = True
        await leader.append(b"a")
        assert isr_without_lagging(pair) is None, "it was at the end half a second ago"
        await pair.pass_ms(LAG_MS - 1_000)
        assert isr_without_lagging(pair) is None
        await pair.pass_ms(1_001)
        assert isr_without_lagging(pair) == frozenset({ME})


@pytest.mark.spec("REP-33")
async def test_a_follower_at_the_end_that_left_the_in_sync_set_joins_it_again() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 2)
        await pair.lead(ME, epoch=0, isr=(ME,), to=(ME,))  # within the epoch
        await pair.pass_ms(3_000)
        assert pair.partition(ME).require_leadership().isr == {ME, OTHER}


async def test_a_follower_hears_of_a_log_start_that_moved_in_an_idle_partition() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 2)
        await pair.data(ME).start_append(b"a", b"b", acks=-1)
        await pair.pass_ms(5_000)
        pair.partition(ME).log.raise_start_offset(1)
        pair.partition(ME).watchers.report_change()
        await pair.pass_ms(1_000)
        assert pair.partition(OTHER).log.start_offset == 1


@pytest.mark.spec("REP-39")
async def test_an_idle_partition_of_a_session_follows_each_change_of_leader() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 2)
        for epoch, leader in enumerate((OTHER, ME, ME, OTHER, ME), 1):
            await pair.lead(leader, epoch=epoch)
            await pair.pass_ms(3_000)
            await pair.data(leader).start_append(b"x", acks=-1)
            assert pair.contents(ME) == pair.contents(OTHER) != b""
        await pair.pass_ms(3_000)
        for broker in (ME, OTHER):
            assert pair.partition(broker).log.high_watermark == 5


async def test_the_watch_of_a_session_ends_with_it() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 2)
        assert list(pair.partition(ME).watchers) == [OTHER]
        await pair.lead(OTHER, epoch=1, key=TP)
        await pair.pass_ms(2_000)
        assert not pair.partition(ME).watchers, "forgotten in the session"
        assert list(pair.partition(ME, SECOND).watchers) == [OTHER]
        pair.links[ME].cut = True
        await pair.pass_ms(2_000)
        pair.links[ME].cut = False
        await pair.pass_ms(5_000)
        assert list(pair.partition(ME, SECOND).watchers) == [OTHER]
        assert len(pair.data(ME).services.sessions) == 1


async def test_a_follower_that_registers_anew_sends_its_new_epoch_for_every_partition() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 3)
        pair.data(OTHER).services.transitions.set_broker_epoch(BrokerEpoch(77))
        await pair.pass_ms(2_000)
        for index in range(3):
            leadership = pair.partition(ME, TopicPartition("t", index)).require_leadership()
            assert leadership.followers[OTHER].broker_epoch == 77


@pytest.mark.spec("REP-62", "DLY-29")
async def test_a_newer_high_watermark_alone_is_sent_within_milliseconds() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 1)
        await pair.data(ME).start_append(b"a", acks=-1)
        assert pair.partition(ME).log.high_watermark == 1
        assert pair.partition(OTHER).log.high_watermark == 0
        await pair.pass_ms(WATERMARK_WAIT_MS + 1)
        assert pair.partition(OTHER).log.high_watermark == 1


@pytest.mark.spec("REP-49")
async def test_a_record_that_is_committed_takes_one_fetch_while_more_follow() -> None:
    async with replica_pair(SETTINGS) as pair:
        await with_partitions(pair, 1)
        before = len(pair.links[ME].requests)
        for _ in range(100):
            await pair.data(ME).start_append(b"a", acks=-1)
        assert len(pair.links[ME].requests) - before <= 102


async def test_where_consumers_read_from_followers_a_high_watermark_does_not_wait() -> None:
    async with replica_pair({**SETTINGS, "replica.selector.class": RACK_AWARE_SELECTOR}) as pair:
        await with_partitions(pair, 1)
        before_ms = pair.data(ME).clock.mono_ms()
        await pair.data(ME).start_append(b"a", acks=-1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert pair.partition(OTHER).log.high_watermark == 1
        assert pair.data(ME).clock.mono_ms() == before_ms
