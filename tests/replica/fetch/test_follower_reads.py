"""Consumers that read from the follower of their rack (KIP-392)."""

from __future__ import annotations

import pytest

from ottla.config.replication import RACK_AWARE_SELECTOR
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.replica.fetch.options import FetchClient
from tests.fakes.data_side import ME, OTHER, TP, fetch_from, values_of
from tests.fakes.replica_pair import ReplicaPair, replica_pair

SELECTS = {"replica.selector.class": RACK_AWARE_SELECTOR}
NEAR_FOLLOWER = FetchClient("rack-1", "PLAINTEXT")
NEAR_LEADER = FetchClient("rack-0", "PLAINTEXT")
ELSEWHERE = FetchClient("rack-9", "PLAINTEXT")


async def with_records(pair: ReplicaPair, *values: bytes) -> None:
    await pair.lead(ME, epoch=0)
    await pair.data(ME).start_append(*values, acks=-1)
    await pair.pass_ms(1_000)


@pytest.mark.spec("REP-78", "CONF-10")
async def test_a_leader_sends_a_consumer_to_the_follower_of_its_rack() -> None:
    async with replica_pair(SELECTS) as pair:
        await with_records(pair, b"a", b"b")
        leader = pair.data(ME)
        for offset, many in ((0, 1), (2, 300)):  # also one that is up to date, at once
            requests = [
                fetch_from(offset),
                *(fetch_from(0, TopicPartition("x", 1)) for _ in range(many)),
            ]
            fetched = await leader.fetch(*requests, client=NEAR_FOLLOWER, max_wait_ms=60_000)
            assert fetched[0].part.preferred_read_replica == OTHER
            assert fetched[0].size == 0
        [waits] = await leader.fetch(fetch_from(2), client=NEAR_FOLLOWER, max_wait_ms=60_000)
        assert waits.part.preferred_read_replica == OTHER
        assert leader.clock.mono_ms() < 5_000, "none of them has waited"
        for client in (NEAR_LEADER, ELSEWHERE, FetchClient("", "PLAINTEXT"), None):
            part = await leader.read(0, client=client)
            assert part.preferred_read_replica == -1
            assert values_of(part) == [b"a", b"b"]
        other_listener = FetchClient("rack-1", "INTERNAL")
        assert (await leader.read(0, client=other_listener)).preferred_read_replica == -1


@pytest.mark.spec("REP-77", "REP-61")
async def test_a_follower_serves_what_it_knows_to_be_committed() -> None:
    async with replica_pair(SELECTS) as pair:
        await with_records(pair, b"a", b"b")
        follower = pair.data(OTHER)
        assert values_of(await follower.read(0, client=NEAR_FOLLOWER)) == [b"a", b"b"]
        waiting = follower.fetch(fetch_from(2), client=NEAR_FOLLOWER, max_wait_ms=60_000)
        await pair.pass_ms(2_000)
        assert not waiting.done()
        await pair.data(ME).start_append(b"c", acks=-1)
        [fetched] = await waiting
        assert values_of(fetched.part) == [b"c"]
        assert follower.clock.mono_ms() < 10_000


@pytest.mark.spec("REP-77")
async def test_records_of_a_follower_above_its_high_watermark_are_not_shown() -> None:
    async with replica_pair(SELECTS) as pair:
        await with_records(pair, b"a")
        follower = pair.data(OTHER)
        log = pair.partition(OTHER).log
        await pair.data(ME).append(b"b")
        await pair.data(ME).settle()
        while log.end_offset < 2:
            await pair.pass_ms(1)
        pair.links[ME].cut = True
        shown = values_of(await follower.read(0, client=NEAR_FOLLOWER))
        assert len(shown) == log.high_watermark
        beyond = await follower.read(log.end_offset + 1, client=NEAR_FOLLOWER)
        assert beyond.error_code is ErrorCode.offset_not_available
        log.raise_start_offset(1)
        before = await follower.read(0, client=NEAR_FOLLOWER)
        assert before.error_code is ErrorCode.offset_out_of_range
        fenced = await follower.fetch(fetch_from(1, leader_epoch=5), client=NEAR_FOLLOWER)
        assert fenced[0].part.error_code is ErrorCode.unknown_leader_epoch
        missing = await follower.fetch(fetch_from(0, TopicPartition("t", 9)), client=NEAR_FOLLOWER)
        assert missing[0].part.error_code is ErrorCode.unknown_topic_or_partition


@pytest.mark.spec("REP-77")
@pytest.mark.parametrize("selects", [True, False])
async def test_followers_serve_nobody_else(selects: bool) -> None:
    async with replica_pair(SELECTS if selects else {}) as pair:
        await with_records(pair, b"a")
        client = None if selects else NEAR_FOLLOWER  # an old client, or an ordinary broker
        part = await pair.data(OTHER).read(0, client=client)
        assert part.error_code is ErrorCode.not_leader_or_follower


async def test_a_reader_of_a_follower_goes_on_at_the_next_leader_without_a_gap() -> None:
    """Scenario 26: the follower becomes the leader while a consumer waits there."""
    async with replica_pair(SELECTS) as pair:
        await with_records(pair, b"a")
        follower = pair.data(OTHER)
        waiting = follower.fetch(
            fetch_from(1, leader_epoch=0), client=NEAR_FOLLOWER, max_wait_ms=60_000
        )
        await pair.lead(OTHER, epoch=1)
        [fetched] = await waiting
        assert fetched.part.error_code is ErrorCode.fenced_leader_epoch
        await follower.start_append(b"b", acks=-1)
        again = fetch_from(1, leader_epoch=1)
        [fetched] = await follower.fetch(again, client=NEAR_FOLLOWER, max_wait_ms=60_000)
        assert values_of(fetched.part) == [b"b"]
        await pair.pass_ms(1_000)
        assert values_of(await pair.data(ME).read(0, client=NEAR_LEADER)) == [b"a", b"b"]
        assert pair.partition(ME, TP).leadership is None
