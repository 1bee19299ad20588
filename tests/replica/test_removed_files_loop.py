"""Files that are removed under the broker: found by the flush, or by a look now and then."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ottla.model.errors import ErrorCode
from ottla.replica.removed_files_loop import EVERY_S, RemovedFilesLoop
from tests.fakes.data_side import TP, DataSide, data_side
from tests.fakes.sync_ring import FakeRing

FAILED = ErrorCode.kafka_storage_error
LOOKS_MS = int(EVERY_S * 1000) + 1
DIRS = ("/a", "/b")
AUTO = {"flush.before.ack": "auto"}


def start(side: DataSide) -> None:
    side.run(RemovedFilesLoop(side.hosted, side.directories).run())


async def after_a_look(side: DataSide) -> None:
    await side.until(side.clock.mono_ms() + LOOKS_MS)
    await side.settle()


async def test_lesser_acks_are_refused_soon_after_a_logs_file_was_removed() -> None:
    async with data_side(dirs=DIRS) as side:
        partition, other = await side.lead(), await side.lead(TP._replace(topic="u"))
        start(side)
        await side.append(b"kept")
        await after_a_look(side)
        side.disk.remove(partition.log.segments.active.files.path())
        assert (await side.append(b"lost")).error_code is ErrorCode.none
        await after_a_look(side)
        assert (await side.append(b"refused")).error_code is FAILED
        assert (await side.append(b"elsewhere", key=other.key)).error_code is ErrorCode.none


async def test_a_directory_that_is_gone_is_noticed_though_nobody_writes() -> None:
    async with data_side(dirs=DIRS) as side:
        await side.lead()
        start(side)
        side.disk.remove_tree(Path("/a"))
        await after_a_look(side)
        assert side.hosted.offline == {TP}
        assert (await side.append(b"refused")).error_code is FAILED


async def test_a_directory_with_another_in_its_place_is_noticed() -> None:
    async with data_side(dirs=DIRS) as side:
        await side.lead()
        start(side)
        side.disk.rename(Path("/a"), Path("/away"))
        side.disk.mkdir(Path("/a"))
        await after_a_look(side)
        [failed] = [one for one in side.directories.all if not one.online]
        assert failed.failure == "the directory was replaced while the broker was running"
        assert side.hosted.offline == {TP}


async def test_nothing_is_given_up_while_everything_is_in_its_place() -> None:
    async with data_side(dirs=DIRS) as side:
        partition = await side.lead()
        start(side)
        for number in range(5):
            await side.append(b"%d" % number)
            partition.log.roll(side.clock.wall_ms())
            await after_a_look(side)
        assert len(side.directories.online) == 2


# Where an acknowledgement waits for the disk


async def test_an_append_to_a_removed_file_is_not_acknowledged() -> None:
    async with data_side(AUTO, dirs=("/a", "/b")) as side:
        partition = await side.lead()
        assert (await side.append(b"kept", acks=-1)).error_code is ErrorCode.none
        side.pool.held = True
        in_flight = side.start_append(b"in flight", acks=-1)
        await side.settle()
        side.disk.remove_tree(partition.log.dir.parent)
        side.pool.held = False
        side.pool.run_all()
        assert (await in_flight).error_code is FAILED
        assert (await side.append(b"after", acks=-1)).error_code is FAILED
        assert side.hosted.offline == {TP}
        [failed] = [one for one in side.directories.all if not one.online]
        assert "was removed while the broker was running" in (failed.failure or "")


async def test_nor_is_one_that_the_kernel_synced_by_itself() -> None:
    ring = FakeRing()
    async with data_side(AUTO, dirs=DIRS, ring=ring) as side:
        await side.lead()
        await side.append(b"first", acks=-1)  # on the pool: it syncs the folder as well
        side.disk.remove(side.hosted.get(TP).log.segments.active.files.path())
        assert (await side.append(b"after", acks=-1)).error_code is FAILED
        assert ring.taken == 1
        asyncio.get_running_loop().remove_reader(ring.fileno())
    ring.close()


async def test_a_partition_deleted_during_a_flush_does_not_cost_its_directory() -> None:
    async with data_side({**AUTO, "log.segment.delete.delay.ms": "0"}) as side:
        await side.lead()
        side.pool.held = True
        under_way = side.start_append(b"a", acks=-1)
        await side.settle()
        side.hosted.remove(TP)
        side.directories.delete(TP)
        [removal] = side.directories.removals.due()
        removal.run()
        side.pool.held = False
        side.pool.run_all()
        await side.settle()
        assert (await under_way).error_code is ErrorCode.not_leader_or_follower
        assert len(side.directories.online) == 1
