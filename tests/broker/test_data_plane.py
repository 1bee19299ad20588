"""The data side put together: what changes with settings, and what a lost disk means."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from ottla.broker import data_plane
from ottla.broker.data_plane import NoLogDirectoryOnline
from ottla.log.directories.directory import CLEAN_SHUTDOWN
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.protocol.records.header import CorruptBatch
from ottla.replica.environment import ThreadPool
from ottla.store import paths
from ottla.store.nodes import LogDirEventNode
from ottla.store.port import Session
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side
from tests.fakes.forgetting_disk import ForgettingDisk

BROKEN = OSError(errno.EIO, "broken")


async def events(side: DataSide) -> list[int]:
    names = await side.store.children(paths.LOG_DIR_EVENTS)
    nodes = await side.store.get_many([f"{paths.LOG_DIR_EVENTS}/{name}" for name in names])
    return [LogDirEventNode.decode(node.data).broker for node in nodes if node is not None]


@pytest.mark.spec("CTL-62")
async def test_the_controller_hears_of_a_lost_directory() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        partition = await side.lead()
        side.hosted.fail(partition, BROKEN)
        await side.settle()
        assert await events(side) == [ME]
        assert side.hosted.offline == {TP}


async def test_rot_costs_its_partition_its_segment_and_nothing_else() -> None:
    async with data_side() as side:
        partition, other = await side.lead(), await side.lead(TP._replace(topic="u"))
        await side.append(b"a")
        segment = partition.log.segments.first
        path = segment.files.path()
        content = bytearray(side.disk.read(path))
        content[16] = 9  # no such format
        side.disk.replace(path, bytes(content))
        segment.release()
        fault = CorruptBatch("found by a reader")
        assert side.hosted.fail(partition, fault).code is ErrorCode.kafka_storage_error
        side.hosted.fail(partition, fault)  # by two at once
        await side.settle()
        assert side.hosted.offline == {TP}
        assert await events(side) == [ME]
        assert not side.disk.exists(path), "it is quarantined"
        assert len(side.directories.online) == 1
        assert (await side.append(b"b", key=other.key)).error_code is ErrorCode.none


async def test_a_controller_that_cannot_be_notified_now_is_notified_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        partition = await side.lead()
        side.store.turn(Session.SUSPENDED)
        side.hosted.fail(partition, BROKEN)
        await side.until(side.clock.mono_ms() + 10_000)
        side.store.reconnect()
        await side.until(side.clock.mono_ms() + 2_000)
        assert await events(side) == [ME]
    assert "cannot notify the controller of the failure in log directory /a" in caplog.text


async def test_without_any_directory_left_a_broker_must_not_go_on() -> None:
    with pytest.raises(BaseExceptionGroup) as failure:
        async with data_side() as side:
            side.hosted.fail(await side.lead(), BROKEN)
            await asyncio.sleep(1)
    assert failure.group_contains(NoLogDirectoryOnline)


async def test_a_stop_during_which_the_last_directory_fails_says_so() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        await side.lead()
        await side.append(b"a")
        side.disk.sync_error = BROKEN
        with pytest.raises(NoLogDirectoryOnline, match=r"/a \(broken\), /b \(broken\)"):
            await side.data.close()


async def test_settings_of_a_topic_reach_its_logs_and_no_others() -> None:
    async with data_side() as side:
        other = TP._replace(topic="u")
        one, two = await side.lead(), await side.lead(other)
        side.config.set_topic("t", {"retention.ms": "1234"})
        assert one.log.config.retention_ms == 1_234
        assert two.log.config.retention_ms != 1_234
        side.config.set_topic("t", {})
        assert one.log.config.retention_ms == two.log.config.retention_ms


async def test_settings_of_the_broker_reach_every_log_that_has_none_of_its_own() -> None:
    async with data_side() as side:
        other = TP._replace(topic="u")
        one, two = await side.lead(), await side.lead(other)
        side.config.set_topic("t", {"retention.ms": "1234"})
        side.config.set_cluster({"log.retention.ms": "5678"})
        assert one.log.config.retention_ms == 1_234
        assert two.log.config.retention_ms == 5_678


async def test_a_clean_stop_is_marked_and_loses_nothing_to_a_power_cut() -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        await side.lead()
        await side.append(b"a", acks=1)
        await side.data.close()
    assert disk.exists(Path("/data") / CLEAN_SHUTDOWN)
    disk.crash(7)
    async with data_side(disk=disk) as side:
        partition = await side.lead(epoch=1)
        assert partition.log.end_offset == 1
        assert partition.log.high_watermark == 1
        assert (await side.append(b"b")).error_code is ErrorCode.none


@pytest.mark.spec("REP-54")
async def test_each_kind_of_waiting_has_a_place_of_its_own() -> None:
    async with data_side() as side:
        waiting = side.hosted.waiting
        names = [one.name for one in (waiting.produce, waiting.fetch, waiting.delete_records)]
        assert names == ["Produce", "Fetch", "DeleteRecords"]


CLUSTER = {"zookeeper.connect": "zookeeper:2181"}


@pytest.mark.parametrize(
    ("settings", "registered", "records", "loaded"),
    [
        (CLUSTER, [ME, OTHER], [b"a"], True),
        (CLUSTER, [ME], [b"a"], False),
        (CLUSTER, [OTHER], [], False),
        ({}, [], [b"a"], False),
    ],
    ids=["one of a cluster", "the first to start", "no records", "a single node"],
)
async def test_a_broker_loads_the_kernels_before_it_can_take_over_from_another(
    settings: dict[str, str],
    registered: list[BrokerId],
    records: list[bytes],
    loaded: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads: list[ThreadPool] = []

    async def load(threads: ThreadPool) -> None:
        loads.append(threads)

    monkeypatch.setattr(data_plane, "load_kernels", load)
    async with data_side(settings) as side:
        await side.lead()
        for record in records:
            await side.append(record)
        for broker in registered:
            await side.store.create(paths.broker(broker))
        announced: list[int] = []
        side.hosted.on_first_append = lambda: announced.append(1)
        await side.data.prepare_to_lead()
        assert bool(loads) == loaded
        await side.append(b"later")
        assert bool(announced) == (not loaded), "otherwise at the first append"
