"""Scenarios of replication and failover on virtual time.

The numbers are those of the table of scenarios in docs/reliability.md. After each everything is
repaired, and what holds after a seeded run must hold: nothing lost, doubled or invented, equal
replicas, whole in-sync sets.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.log.directories.checkpoint_file import RECOVERY_POINTS, write_offsets
from ottla.testing.history import Leads
from tests.fakes.async_tests import played_by
from tests.sim.cluster.moments import Moment
from tests.sim.cluster.stage import T0, Stage, play
from tests.sim.cluster.verdict import log_of

SEGMENT = Path("/data/t-0/00000000000000000000.log")


@played_by(play)
async def test_scenario_01_kill_of_a_leader_loses_nothing_and_writes_go_on(stage: Stage) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        stage.node(1).kill()
        await stage.until_gone(1)
        before = stage.acknowledged()
        assert await stage.until(lambda: stage.acknowledged() > before) < 1.5
        assert stage.leader() != 1


@played_by(play)
async def test_scenario_02_a_leader_cut_off_from_followers_acknowledges_nothing_and_stays(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        stage.cut((1, 2), (1, 3))
        await asyncio.sleep(0.5)  # what was on its way
        before, epoch = stage.acknowledged(), stage.epoch()
        await asyncio.sleep(5.0)
        assert stage.acknowledged() == before
        assert (stage.leader(), stage.epoch()) == (1, epoch), "its session lives"
        stage.heal()
        await stage.until(lambda: stage.acknowledged() > before)


@played_by(play)
async def test_scenario_03_a_leader_cut_off_from_the_store_is_replaced_and_truncates(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        stage.node(1).cut_from_store()
        before = stage.acknowledged()
        await stage.until(lambda: stage.acknowledged() > before)
        assert stage.leader() == 1, "it goes on until another one is elected"
        await stage.until(lambda: stage.leader() != 1)
        stage.node(1).heal_store()
        await stage.until(lambda: stage.isr() == {1, 2, 3})


@played_by(play)
async def test_scenario_04_two_failovers_within_a_second_leave_equal_logs(stage: Stage) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        stage.node(1).kill()
        await stage.until(lambda: stage.leader() == 2)
        stage.node(2).expire_session()
        took_s = await stage.until(lambda: stage.leader() == 3)
        assert took_s < 1.0
        await stage.start(1)


def test_scenario_05_a_follower_with_a_stale_high_watermark_keeps_committed_records() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        await stage.write(20)
        end = log_of(stage.node(3), T0).end
        stage.node(3).kill()  # the checkpoint of its high watermark says 0
        await stage.start(3)
        assert log_of(stage.node(3), T0).end == end
        stage.node(1).kill()
        stage.node(2).kill()
        await stage.until(lambda: stage.leader() != 1)

    settings = {"replica.high.watermark.checkpoint.interval.ms": "60000"}
    stage = play(scenario, settings)
    assert not stage.logged("truncating t-0")


@played_by(play, {"flush.before.ack": "auto"})
async def test_scenario_06_a_sole_in_sync_leader_keeps_its_partition_offline_until_it_returns(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3), min_insync_replicas="1")
    stage.node(2).kill()
    stage.node(3).kill()
    await stage.until(lambda: stage.isr() == {1})
    sent = await stage.write(10)
    stage.node(1).cut_power()
    await stage.start(2)
    await stage.start(3)
    await asyncio.sleep(10.0)
    assert (stage.leader(), stage.isr()) == (-1, {1})
    await stage.start(1)
    await stage.until(lambda: stage.isr() == {1, 2, 3})
    assert log_of(stage.node(2), T0).end >= sent[-1].offset + 1


@pytest.mark.parametrize("seed", range(3))
def test_scenario_07_with_every_flush_a_power_cut_of_all_machines_loses_nothing(seed: int) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            for _ in range(3):
                await stage.until_acknowledged(10)
                for broker in (1, 2, 3):
                    stage.node(broker).cut_power()
                await asyncio.gather(*(stage.start(broker) for broker in (3, 1, 2)))

    play(scenario, {"flush.before.ack": "all"}, seed)


@pytest.mark.parametrize("damage", ["bit", "cut"])
@pytest.mark.parametrize("broker", [1, 2])
def test_scenario_08_damage_of_one_replica_is_repaired_and_never_spread(
    broker: int, damage: str
) -> None:
    """Broker 1 is the preferred leader; both replicas lose their recovery points with it."""

    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        sent = await stage.write(20)
        stage.node(broker).kill()
        disk = stage.node(broker).disk
        if damage == "bit":
            disk.flip_bit(SEGMENT)
        else:
            content = disk.read(SEGMENT)
            disk.replace(SEGMENT, content[: len(content) // 2])
        await stage.start(broker)
        await stage.until(lambda: stage.isr() == {1, 2, 3})
        assert log_of(stage.node(broker), T0).end > sent[-1].offset

    play(scenario)


@pytest.mark.parametrize("broker", [1, 2])
def test_scenario_08_a_flushed_log_that_is_damaged_is_copied_anew_without_another_start(
    broker: int,
) -> None:
    """Below the recovery point nothing is truncated: the log is set aside."""

    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        await stage.write(20)
        node = stage.node(broker)
        end = log_of(node, T0).end
        node.kill()
        node.disk.flip_bit(SEGMENT)
        write_offsets(node.disk, Path("/data") / RECOVERY_POINTS, {T0: end})
        await stage.start(broker)
        await stage.until(lambda: stage.isr() == {1, 2, 3})
        assert log_of(node, T0).end >= end

    assert play(scenario).logged("the corrupt log of t-0 was renamed")


def test_scenario_08_a_leader_whose_log_is_damaged_resigns_and_copies_it_anew() -> None:
    """Nobody reads there until a follower begins from nothing, and is not given a bad record."""

    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        await stage.write(20)
        stage.node(3).kill()
        await stage.until(lambda: stage.isr() == {1, 2})
        stage.node(3).disk.wipe()
        stage.node(1).disk.flip_bit(SEGMENT)
        await stage.start(3)
        await stage.until(lambda: stage.leader() == 2)
        await stage.until(lambda: stage.isr() == {1, 2, 3})

    assert play(scenario).logged("the corrupt log of t-0 was renamed")


def test_scenario_09_a_wiped_disk_under_the_same_id_is_not_elected_and_refills() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        sent = await stage.write(20)
        stage.node(1).kill()
        stage.node(1).disk.wipe()
        await stage.start(1)  # before the store misses it
        await stage.until(lambda: stage.isr() == {1, 2, 3})
        assert stage.leader() != 1
        assert log_of(stage.node(1), T0).end > sent[-1].offset
        led = [event for event in stage.book.events if isinstance(event, Leads)]
        assert all(event.log_end for event in led if event.leader_epoch and event.log_end >= 0)

    stage = play(scenario)
    assert stage.logged("it leaves every ISR and refills")


@played_by(play, {"zookeeper.session.timeout.ms": "60000"})
async def test_scenario_19_a_stopped_follower_leaves_in_time_and_rejoins_at_the_high_watermark(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        stage.node(3).pause()
        took_s = await stage.until(lambda: stage.isr() == {1, 2})
        assert took_s < 1.5 * 1.5 + 0.2
        before = stage.acknowledged()
        await stage.until(lambda: stage.acknowledged() > before + 20)
        stage.node(3).resume()
        subject = await stage.cluster.moments.wait(Moment.ISR_GROWS, 10.0)
        assert subject is not None and subject.joined == 3
        committed = [e.high_watermark for e in stage.book.events if isinstance(e, Leads)]
        assert log_of(stage.node(3), T0).end >= max(committed)


@pytest.mark.parametrize(("source", "target"), [(1, 2), (2, 1)])
def test_scenario_20_a_link_that_passes_in_one_direction_only_acknowledges_nothing_twice(
    source: int, target: int
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            await stage.until_acknowledged(20)
            stage.cut((source, target), one_way=True)
            before = stage.acknowledged()
            await stage.until(lambda: stage.acknowledged() > before + 10)
            assert stage.isr() == {1, 3}, "the others go on without the follower"
            stage.heal()

    play(scenario)
