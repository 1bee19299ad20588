"""How a scripted second replica leaves the in-sync set and comes back."""

from __future__ import annotations

import logging

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.replica.partition import HostedPartition
from ottla.store import paths
from ottla.store.nodes import StateNode
from ottla.store.port import Session
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side

TWO = (ME, OTHER)
BOTH, ALONE = frozenset(TWO), frozenset({ME})
LAG_MS = 10_000
SETTINGS = {"replica.lag.time.max.ms": str(LAG_MS)}


async def stored_isr(side: DataSide) -> tuple[BrokerId, ...]:
    node = await side.store.get(paths.partition_state(TP))
    assert node is not None
    return StateNode.decode(node.data).isr


async def pass_ms(side: DataSide, ms: int) -> None:
    await side.until(side.clock.mono_ms() + ms)


async def until_alone(side: DataSide, partition: HostedPartition) -> None:
    while partition.require_leadership().isr != ALONE:
        await pass_ms(side, 100)


@pytest.mark.spec("REP-26", "REP-28", "REP-29", "REP-20", "REP-30", "MON-19")
async def test_a_stuck_follower_leaves_within_one_and_a_half_times_the_limit() -> None:
    async with data_side(SETTINGS) as side:
        partition = await side.lead(replicas=TWO)
        side.run(*side.data.loops())
        waiting = side.start_append(b"a", acks=-1, timeout_ms=60_000)
        began = side.clock.mono_ms()
        await waiting
        assert LAG_MS < side.clock.mono_ms() - began <= LAG_MS * 1.5
        assert partition.require_leadership().isr == ALONE
        assert await stored_isr(side) == (ME,)
        assert partition.log.high_watermark == 1, "without the slowest it moves on"
        assert side.count("kafka_server_replicamanager_isr_shrinks_total") == 1


@pytest.mark.spec("REP-26", "REP-27")
async def test_a_follower_that_keeps_fetching_stays_however_many_records_it_lacks() -> None:
    async with data_side(SETTINGS) as side:
        partition = await side.lead(replicas=TWO)
        side.run(*side.data.loops())
        for offset in range(60):
            await side.append(*[b"x"] * 3)
            side.start_fetch(offset * 3, replica_id=OTHER, max_wait_ms=0)
            await pass_ms(side, 1_000)
        assert partition.require_leadership().isr == BOTH


@pytest.mark.spec("REP-33", "REP-34", "REP-63", "MON-19")
async def test_a_follower_that_caught_up_joins_again_on_its_fetch() -> None:
    async with data_side(SETTINGS) as side:
        partition = await side.lead(replicas=TWO)
        side.run(*side.data.loops())
        await side.append(b"a", b"b")
        await until_alone(side, partition)
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        await side.settle()
        assert partition.require_leadership().isr == ALONE, "it lacks what is committed"
        side.start_fetch(2, replica_id=OTHER, max_wait_ms=0)
        await side.settle()
        assert partition.require_leadership().isr == BOTH
        assert await stored_isr(side) == TWO
        assert side.count("kafka_server_replicamanager_isr_expands_total") == 1


@pytest.mark.spec("REP-19", "REP-20")
async def test_a_proposed_member_counts_before_the_store_has_answered() -> None:
    async with data_side(SETTINGS) as side:
        partition = await side.lead(replicas=TWO, isr=(ME,))
        await side.append(b"a")
        side.store.turn(Session.SUSPENDED)
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        await side.settle()
        assert partition.require_leadership().proposed == BOTH
        waiting = side.start_append(b"b", acks=-1, timeout_ms=60_000)
        await pass_ms(side, LAG_MS * 2)
        assert not waiting.done(), "a later leader may know it as a member"
        side.start_fetch(2, replica_id=OTHER, max_wait_ms=0)
        assert (await waiting).error_code is ErrorCode.none
        side.store.turn(Session.CONNECTED)
        await pass_ms(side, 1_000)
        assert (partition.require_leadership().isr, partition.require_leadership().proposed) == (
            BOTH,
            None,
        )


@pytest.mark.spec("REP-29", "REP-35")
async def test_a_set_that_was_changed_elsewhere_is_not_believed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with data_side(SETTINGS) as side:
        partition = await side.lead(replicas=TWO)
        node = await side.store.get(paths.partition_state(TP))
        assert node is not None
        await side.store.set(paths.partition_state(TP), node.data)  # a controller's doing
        side.run(*side.data.loops())
        await side.append(b"a")
        await pass_ms(side, LAG_MS * 3)
        assert partition.require_leadership().isr == BOTH
        assert partition.log.high_watermark == 0
        assert await stored_isr(side) == TWO
        assert partition.require_leadership().proposed == ALONE, "it may hold nevertheless"
    assert "ISR change of t-0 rejected" in caplog.text


@pytest.mark.spec("REP-19", "REP-20", "REP-35")
async def test_a_joining_member_counts_after_a_conflict_until_leader_and_isr_says_otherwise() -> (
    None
):
    async with data_side(SETTINGS) as side:
        await side.lead(replicas=TWO, isr=(ME,))
        node = await side.store.get(paths.partition_state(TP))
        assert node is not None
        await side.store.set(paths.partition_state(TP), node.data)  # a controller's doing
        side.start_fetch(0, replica_id=OTHER, max_wait_ms=0)
        await side.settle()
        waiting = side.start_append(b"a", acks=-1, timeout_ms=60_000)
        await pass_ms(side, LAG_MS * 2)
        assert not waiting.done(), "the controller may have taken it"
        await side.lead(epoch=1, replicas=TWO, isr=(ME,))
        assert (await waiting).error_code is ErrorCode.none


async def test_a_leader_deposed_while_the_store_is_asked_keeps_its_hands_off() -> None:
    async with data_side(SETTINGS) as side:
        partition = await side.lead(replicas=TWO, isr=(ME,))
        side.start_fetch(0, replica_id=OTHER, max_wait_ms=0)
        await side.follow(epoch=1)  # before the proposal's task has even begun
        await side.settle()
        assert partition.leadership is None
        again = await side.lead(epoch=2, replicas=TWO, isr=(ME,))
        assert again.require_leadership().proposed is None


@pytest.mark.spec("MON-18")
async def test_partitions_without_followers_or_led_elsewhere_are_never_proposed_for() -> None:
    async with data_side(SETTINGS) as side:
        partition = await side.lead()
        await side.follow(TopicPartition("followed", 0), epoch=0)
        side.run(*side.data.loops())
        await side.append(b"a")
        await pass_ms(side, LAG_MS * 4)
        assert partition.require_leadership().proposed is None
        assert side.count("kafka_server_replicamanager_under_replicated_partitions") == 0
