"""Scenarios of log directories, racks and many partitions on virtual time.

The numbers are those of the table of scenarios in docs/reliability.md; see
`test_scenarios_replication`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from ottla.config.replication import RACK_AWARE_SELECTOR
from ottla.model.ids import TopicPartition
from ottla.testing.history import Leads
from tests.fakes.async_tests import played_by
from tests.sim import admin
from tests.sim.cluster.disk_replacement import replace_disk
from tests.sim.cluster.node import rack_of
from tests.sim.cluster.stage import T0, Stage, play
from tests.sim.ottla_client import SimConsumer

SENT = "kafka_server_brokertopicmetrics_all_topics_bytes_out_total"


class RackReader:
    """Reads T0 in a rack, and notes what no reader may see: a gap, or what is not committed."""

    def __init__(self, stage: Stage, rack: str) -> None:
        self.offsets: list[int] = []
        self.uncommitted: list[int] = []
        self.is_finished = False
        self._stage = stage
        self._consumer = SimConsumer(
            stage.cluster.clock,
            Random(26),
            bootstrap_servers=stage.cluster.admin.bootstrap,
            client_rack=rack,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=1_000,
        )

    async def run(self) -> None:
        async with self._consumer as consumer:
            consumer.assign([T0])
            consumer.seek_to_beginning(T0)
            while not self.is_finished:
                records = await consumer.poll(0.2)
                high_watermark = self._high_watermark()
                self.offsets += [record.offset for record in records]
                self.uncommitted += [r.offset for r in records if r.offset >= high_watermark]

    def _high_watermark(self) -> int:
        """The highest that any leader has had."""
        events = self._stage.book.events
        return max(
            e.high_watermark for e in events if isinstance(e, Leads) and e.partition == "t-0"
        )


@pytest.mark.spec("REP-69")
@played_by(play, {"replica.selector.class": RACK_AWARE_SELECTOR, "min.insync.replicas": "1"})
async def test_scenario_26_a_reader_of_a_follower_sees_no_gap_across_a_change_of_leaders(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    reader = RackReader(stage, rack_of(3))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reader.run())
        async with stage.load():
            await stage.until_acknowledged(30)
            stage.node(1).kill()
            await stage.until(lambda: stage.leader() == 2)
            before = stage.metric(3, SENT)
            await stage.until_acknowledged(30)
            await stage.until(lambda: stage.metric(3, SENT) > before)
            stage.cut((2, 3))  # the follower falls behind: the reader is sent to the leader
            await stage.until(lambda: 3 not in stage.isr() and stage.leader() == 2)
            await stage.until_acknowledged(10)
            stage.heal()
        written = stage.acknowledged()
        await stage.until(lambda: len(reader.offsets) >= written)
        reader.is_finished = True
    assert reader.offsets == list(range(len(reader.offsets)))
    assert not reader.uncommitted


def directory_of(stage: Stage, broker: int, tp: TopicPartition) -> Path:
    node = stage.node(broker)
    return next(parent for parent in node.data_dirs if node.disk.exists(parent / str(tp)))


def test_scenario_27_partitions_of_a_failed_directory_fail_over_and_the_others_stay() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        other = await stage.topic((1, 2, 3), name="u")
        failed = directory_of(stage, 1, T0)
        assert directory_of(stage, 1, other) != failed
        async with stage.load(), stage.load(other):
            await stage.until_acknowledged(20)
            epoch = stage.epoch(other)
            stage.node(1).disk.failed_directory = failed
            await stage.until(lambda: stage.leader() in (2, 3))
            await stage.until_acknowledged(50)
            assert (stage.leader(other), stage.epoch(other)) == (1, epoch)
            assert stage.isr(other) == {1, 2, 3}
            assert 1 not in stage.isr()
            await replace_disk(stage, 1)
            await stage.until(lambda: stage.isr() == {1, 2, 3})

    stage = play(scenario, {"log.dirs": "/data,/more"})
    assert stage.logged("offline")


@pytest.mark.parametrize("broker", [1, 2])
def test_scenario_28_a_broker_whose_disk_is_full_fails_over_and_comes_back_with_more_space(
    broker: int,
) -> None:
    """Broker 1 leads."""

    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            await stage.until_acknowledged(20)
            disk = stage.node(broker).disk
            disk.capacity_bytes = disk.written_bytes + 2_000
            await stage.until(lambda: broker not in stage.isr() and stage.leader() != broker)
            await stage.until_acknowledged(30)
            await replace_disk(stage, broker)
            await stage.until(lambda: stage.isr() == {1, 2, 3})

    play(scenario)


@played_by(play)
async def test_scenario_29_all_leaders_are_elected_after_the_controller_was_killed(
    stage: Stage,
) -> None:
    """With fewer partitions than in real processes: virtual time says nothing about their number.
    The killed controller leads a third of them."""
    await stage.topic((1, 2, 3))
    await admin.create(stage.cluster.admin, admin.NewTopic("many", 150, {}, 3))
    view = stage.cluster.view
    many = [TopicPartition("many", number) for number in range(150)]
    await stage.until(lambda: all(len(stage.isr(tp)) == 3 for tp in many))
    dead = view.controller()
    led = [tp for tp in many if stage.leader(tp) == dead]
    assert len(led) >= 40
    stage.node(dead).kill()
    await stage.until_gone(dead)
    await stage.until(lambda: all(stage.leader(tp) not in (dead, -1) for tp in many), 5.0)
    assert view.controller() not in (dead, -1)
    await stage.write(5)
