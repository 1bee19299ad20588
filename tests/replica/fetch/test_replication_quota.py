"""Replication throttles: what counts, what is held back, and what never is."""

from __future__ import annotations

import pytest

from ottla.delay.rates import Windows
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from ottla.replica.fetch.replication_quota import (
    LONGEST_DELAY_MS,
    ReplicationQuota,
    is_throttled,
)
from tests.fakes.data_side import ME, OTHER, TP
from tests.fakes.replica_pair import ReplicaPair, replica_pair

RATE = 10_000
VALUE = bytes(1_000)


def test_a_quota_is_exceeded_until_the_measured_rate_is_below_it() -> None:
    quota = ReplicationQuota(Windows(11, 1_000), lambda: 100.0)
    assert quota.delay_ms(MonoMs(0)) == 0
    quota.record(5_000, MonoMs(0))
    assert quota.is_exceeded(MonoMs(0))
    assert quota.delay_ms(MonoMs(0)) == LONGEST_DELAY_MS
    assert not quota.is_exceeded(MonoMs(60_000))
    assert quota.delay_ms(MonoMs(60_000)) == 0


def test_a_rate_of_nothing_holds_back_for_as_long_as_it_is_set() -> None:
    quota = ReplicationQuota(Windows(11, 1_000), lambda: 0.0)
    assert quota.delay_ms(MonoMs(0)) == 0
    quota.record(1, MonoMs(0))
    assert quota.delay_ms(MonoMs(0)) == LONGEST_DELAY_MS


def test_throttled_replicas_are_named_by_partition_and_broker() -> None:
    assert is_throttled(("*",), TP, ME)
    assert is_throttled(("3:1", "0:1"), TP, OTHER)
    assert not is_throttled(("3:1", "0:1"), TP, ME)
    assert not is_throttled(("0:1",), TopicPartition("t", 1), OTHER)
    assert not is_throttled((), TP, ME)


async def fill(pair: ReplicaPair, count: int) -> None:
    """A leader with records, which the other replica has none of."""
    await pair.lead(ME, epoch=0, isr=(ME,), to=(ME,))
    for _ in range(count):
        await pair.data(ME).append(VALUE)


@pytest.mark.spec("REP-53", "SEC-08")
@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_replica_that_is_not_in_sync_is_copied_at_the_throttled_rate(side: str) -> None:
    settings = {f"{side}.replication.throttled.rate": str(RATE), "replica.fetch.max.bytes": "4000"}
    async with replica_pair(settings) as pair:
        await fill(pair, 400)
        for broker in (ME, OTHER):
            pair.data(broker).config.set_topic("t", {f"{side}.replication.throttled.replicas": "*"})
        pair.partition(ME).log.config = pair.data(ME).config.topic("t")
        before = len(pair.links[ME].requests)
        await pair.lead(ME, epoch=1, isr=(ME,))
        await pair.pass_ms(20_000)
        copied = len(pair.contents(OTHER))
        assert 15 * RATE < copied < 32 * RATE, "the windows before the first record are empty"
        assert len(pair.links[ME].requests) - before < 400, "it does not ask all the time"
        await pair.pass_ms(40_000)
        assert pair.contents(OTHER) == pair.contents(ME)
        assert pair.partition(ME).require_leadership().isr == {ME, OTHER}


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_replica_in_sync_is_never_held_back(side: str) -> None:
    async with replica_pair({f"{side}.replication.throttled.rate": "1"}) as pair:
        await pair.lead(ME, epoch=0)
        for broker in (ME, OTHER):
            pair.data(broker).config.set_topic("t", {f"{side}.replication.throttled.replicas": "*"})
            pair.partition(broker).log.config = pair.data(broker).config.topic("t")
        await pair.pass_ms(1_000)
        for _ in range(5):
            started_ms = pair.data(ME).clock.mono_ms()
            await pair.data(ME).start_append(VALUE, acks=-1, timeout_ms=60_000)
            assert pair.data(ME).clock.mono_ms() - started_ms < 100


async def test_replicas_that_are_not_named_are_not_throttled() -> None:
    async with replica_pair({"leader.replication.throttled.rate": "1"}) as pair:
        await fill(pair, 100)
        config = {"leader.replication.throttled.replicas": "0:1,5:0"}
        pair.data(ME).config.set_topic("t", config)
        pair.partition(ME).log.config = pair.data(ME).config.topic("t")
        await pair.lead(ME, epoch=1, isr=(ME,))
        await pair.pass_ms(2_000)
        assert pair.contents(OTHER) == pair.contents(ME)
