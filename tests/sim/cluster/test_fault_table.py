"""The faults of docs/reliability.md that have no number among the scenarios, on three brokers.

After each everything is repaired, and what holds after a seeded run must hold.
"""

from __future__ import annotations

import asyncio
import errno
from random import Random

import pytest

from ottla.cli.metadata.tree_copy import advanced, delete_tree, is_empty, read_tree, write_tree
from ottla.store.memory import MemoryStore
from tests.fakes.async_tests import played_by
from tests.sim.cluster.disk_replacement import replace_disk
from tests.sim.cluster.faults import CLIENTS, HOUR_MS
from tests.sim.cluster.stage import T0, Stage, play
from tests.sim.cluster.verdict import log_of
from tests.sim.network import Weather
from tests.sim.rot import rot

ACTIVE = "kafka_controller_kafkacontroller_active_controller_count"


@pytest.mark.parametrize("broker", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_a_broker_killed_during_its_recovery_recovers_again(broker: int, seed: int) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            await stage.until_acknowledged(20)
            stage.node(broker).kill()
            await stage.cluster.faults.kill_while_it_starts(stage.node(broker))
            await stage.start(broker)
            await stage.until(lambda: stage.isr() == {1, 2, 3})

    play(scenario, seed=seed)


def test_a_leader_paused_past_its_session_acknowledges_nothing_of_what_it_alone_has() -> None:
    """As SIGSTOP and SIGCONT do: it wakes up as a leader, and truncates by epoch."""

    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            await stage.until_acknowledged(20)
            stage.cut((1, 2), (1, 3))
            alone = log_of(stage.node(1), T0).end
            await stage.until(lambda: log_of(stage.node(1), T0).end > alone)
            stage.node(1).pause()
            stage.heal()
            await stage.until(lambda: stage.leader() not in (1, -1))
            await stage.until_acknowledged(20)
            stage.node(1).resume()
            await stage.until(lambda: stage.isr() == {1, 2, 3})
            await stage.until_acknowledged(20)

    assert play(scenario).logged("truncating t-0")


@played_by(play, {"flush.before.ack": "all"})
async def test_a_follower_with_a_slow_disk_leaves_and_the_others_go_on(stage: Stage) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        stage.cluster.loop.slow_hosts[stage.node(3).host] = 500.0
        await stage.until(lambda: stage.isr() == {1, 2})
        assert await stage.until_acknowledged(30) < 10.0
        stage.cluster.loop.slow_hosts.clear()
        await stage.until(lambda: stage.isr() == {1, 2, 3})


@pytest.mark.parametrize("seed", range(3))
def test_what_a_power_cut_tore_is_truncated_and_fetched_again(seed: int) -> None:
    """Nothing is flushed for an acknowledgement: the tail of the log is at risk."""

    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            for broker in (3, 1):
                await stage.until_acknowledged(30)
                stage.node(broker).cut_power()
                await stage.until_gone(broker)
                await stage.start(broker)
                await stage.until(lambda: stage.isr() == {1, 2, 3})

    play(scenario, {"flush.before.ack": "never"}, seed)


@pytest.mark.parametrize("broker", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_damaged_indexes_snapshots_and_checkpoints_make_no_replica_differ(
    broker: int, seed: int
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3), internal_segment_bytes="2000")
        async with stage.load():
            await stage.until_acknowledged(60)
            node = stage.node(broker)
            node.kill()
            assert rot(node.disk, node.data_dirs, Random(seed))
            await stage.start(broker)
            await stage.until(lambda: stage.isr() == {1, 2, 3})

    play(scenario, seed=seed)


@pytest.mark.parametrize("broker", [1, 2])
def test_a_directory_whose_fsync_failed_is_offline_until_its_broker_restarts(broker: int) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            await stage.until_acknowledged(20)
            disk = stage.node(broker).disk
            disk.sync_error = OSError(errno.EIO, "input/output error")
            await stage.until(lambda: broker not in stage.isr() and stage.leader() != broker)
            disk.mend()  # a later fsync would succeed, and say nothing about the failed one
            await stage.until_acknowledged(30)
            assert broker not in stage.isr()
            await replace_disk(stage, broker)
            await stage.until(lambda: stage.isr() == {1, 2, 3})

    play(scenario, {"flush.before.ack": "all"})


@pytest.mark.parametrize("kind", ["reset", "silence"])
def test_a_client_whose_connections_break_in_the_middle_of_requests_writes_nothing_twice(
    kind: str,
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        network = stage.cluster.loop.network
        async with stage.load():
            network.weather_between[frozenset((stage.node(1).host, CLIENTS))] = Weather(
                fragment=0.5, **{kind: 0.1}
            )
            await stage.until_acknowledged(60)
            network.weather_between.clear()

    play(scenario)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_moves_an_hour_elects_and_fences_nobody(hours: int) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            await stage.until_acknowledged(20)
            before = stage.leader(), stage.epoch(), stage.cluster.view.controller_epoch()
            for broker in (1, 2, 3):
                stage.node(broker).set_clock(hours * HOUR_MS)
                await asyncio.sleep(3.0)
                now = stage.leader(), stage.epoch(), stage.cluster.view.controller_epoch()
                assert now == before
                assert stage.isr() == {1, 2, 3}

    play(scenario)


@played_by(play)
async def test_one_controller_is_left_when_every_session_ended_at_once(stage: Stage) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        for broker in (1, 2, 3):
            stage.node(broker).expire_session()
        await stage.until(lambda: stage.cluster.view.registered() == [1, 2, 3])
        await stage.until(lambda: stage.isr() == {1, 2, 3} and stage.leader() > 0)
        await stage.until_acknowledged(20)
    active = [broker for broker in (1, 2, 3) if stage.metric(broker, ACTIVE)]
    assert active == [stage.cluster.view.controller()]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_brokers_start_in_any_order_after_all_were_killed(order: tuple[int, ...]) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            await stage.until_acknowledged(20)
            for broker in (1, 2, 3):
                stage.node(broker).kill()
            for broker in order:
                await asyncio.sleep(2.0)
                await stage.start(broker)
            await stage.until(lambda: stage.isr() == {1, 2, 3})

    play(scenario)


@played_by(play)
async def test_the_death_of_a_leader_while_the_controller_is_cut_off_from_the_store_loses_nothing(
    stage: Stage,
) -> None:
    controller = stage.cluster.view.controller()
    leader, other = sorted({1, 2, 3} - {controller})
    await stage.topic((leader, other, controller))
    async with stage.load():
        await stage.until_acknowledged(20)
        stage.node(controller).cut_from_store()
        stage.node(leader).kill()
        await stage.until(lambda: stage.cluster.view.controller() == other)
        await stage.until(lambda: stage.leader() not in (leader, -1))
        stage.node(controller).heal_store()
        await stage.start(leader)
        await stage.until(lambda: stage.isr() == {1, 2, 3})


@played_by(play)
async def test_a_cluster_whose_store_lost_its_data_goes_on_with_an_export(stage: Stage) -> None:
    """As `ottla metadata export` and `import` do: the brokers are stopped for the import."""
    await stage.topic((1, 2, 3), retention_ms="-1")
    await stage.write(20)
    store = MemoryStore(stage.cluster.ensemble)
    await store.start()
    backup = await read_tree(store)
    await stage.write(20)  # records are not part of an export
    for broker in (1, 2, 3):
        await stage.node(broker).stop()
    await delete_tree(store, await read_tree(store))
    assert await is_empty(store)
    await write_tree(store, advanced(backup))
    await store.close()
    for broker in (3, 1, 2):
        await stage.start(broker)
    await stage.until(lambda: stage.isr() == {1, 2, 3})
    await stage.write(5)
