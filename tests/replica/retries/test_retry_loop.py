"""Descriptors or memory run out while the controller's requests are performed, and come back."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import DELETED_EPOCH, BrokerId, LeaderEpoch, TopicPartition
from ottla.replica.leader import LeaderAssignment
from ottla.replica.retries.schedule import LONGEST_MS
from ottla.replica.transitions import PartitionStop, PartitionTransition
from ottla.store import paths
from tests.fakes.data_side import ME, OTHER, TOPIC_ID, TP, DataSide, data_side, values_of
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.replica_pair import replica_pair
from tests.fakes.scarce_disk import ScarceDisk, everything, nothing

GOOD, REFUSED = ErrorCode.none, ErrorCode.kafka_storage_error
MANY = [TopicPartition("t", number) for number in range(20)]


@asynccontextmanager
async def scarce_side(
    dirs: tuple[str, ...] = ("/data",),
) -> AsyncIterator[tuple[DataSide, ScarceDisk]]:
    disk = ScarceDisk()
    async with data_side(disk=disk, dirs=dirs) as side:
        side.run(side.data._retries.run())
        yield side, disk


def state(
    key: TopicPartition = TP,
    epoch: int = 0,
    leader: BrokerId = ME,
    topic_id: UUID = TOPIC_ID,
    *,
    is_new: bool = True,
) -> PartitionTransition:
    assigned = LeaderAssignment(leader, LeaderEpoch(epoch), (ME,), (ME, OTHER), version=epoch)
    return PartitionTransition(key, topic_id, assigned, is_new)


async def become(side: DataSide, *states: PartitionTransition) -> set[ErrorCode]:
    return set((await side.services.transitions.apply_leader_and_isr(states)).values())


async def delete(side: DataSide, *keys: TopicPartition) -> set[ErrorCode]:
    stops = [PartitionStop(key, DELETED_EPOCH, delete=True) for key in keys]
    return set((await side.services.transitions.stop_replicas(stops)).values())


async def notifications(side: DataSide) -> int:
    return len(await side.store.children(paths.LOG_DIR_EVENTS))


def partition_directories(disk: ScarceDisk, dir: str = "/data") -> list[str]:
    return [name for name in disk.list(Path(dir)) if name.startswith("t-")]


async def test_partitions_that_found_no_descriptor_come_online_without_a_restart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scarce_side() as (side, disk):
        disk.refuses = everything
        assert await become(side, *map(state, MANY)) == {REFUSED}
        assert side.hosted.offline == set(MANY)
        await asyncio.sleep(60)
        assert side.hosted.offline == set(MANY)
        assert await notifications(side) == 0, "there is nothing to ask for yet"
        disk.refuses = nothing
        await asyncio.sleep(LONGEST_MS / 1e3)
        assert side.hosted.offline == set()
        assert await notifications(side) == 1
        assert await become(side, *(state(key, 1, is_new=False) for key in MANY)) == {GOOD}
        assert len(side.hosted) == len(MANY)
        assert (await side.append(b"a", key=MANY[7])).error_code is GOOD
        assert all(directory.online for directory in side.directories.all)
        warnings = [record for record in caplog.records if record.levelname == "WARNING"]
        assert len(warnings) == 1, "one for all of them"


async def test_attempts_are_few_while_the_shortage_lasts() -> None:
    async with scarce_side() as (side, disk):
        disk.refuses = everything
        await become(side, *map(state, MANY))
        before = disk.refused
        await asyncio.sleep(60)
        assert 5 <= disk.refused - before <= 15, "one replica each time, at growing intervals"


async def test_the_next_request_of_the_controller_does_not_wait_for_the_loop() -> None:
    async with scarce_side() as (side, disk):
        disk.refuses = everything
        assert await become(side, state()) == {REFUSED}
        disk.refuses = nothing
        assert await become(side, state(epoch=1, is_new=False)) == {GOOD}
        assert side.hosted.get(TP).require_leadership().epoch == 1
        await asyncio.sleep(60)
        assert await notifications(side) == 0


@pytest.mark.parametrize("part", ["partition.metadata", ".log", "data"])
async def test_a_log_that_was_created_in_part_is_completed_in_its_place(part: str) -> None:
    """The file with the topic id, the first segment, or only the sync of the log directory."""
    async with scarce_side(("/a-data", "/b-data")) as (side, disk):
        disk.refuses = lambda path: path.name.endswith((part, part + ".tmp"))
        assert await become(side, state()) == {REFUSED}
        disk.refuses = nothing
        for other in MANY[1:6]:
            await side.lead(other)  # the other directory has fewer partitions now, or more
        await asyncio.sleep(1)
        assert await become(side, state(epoch=1, is_new=False)) == {GOOD}
        assert (await side.append(b"a")).base_offset == 0
        disk.kill()
    async with data_side(disk=disk, dirs=("/a-data", "/b-data")) as side:
        log = side.directories.get(TP)
        assert log is not None
        assert log.topic_id == TOPIC_ID
        found = [
            name for dir in ("/a-data", "/b-data") for name in partition_directories(disk, dir)
        ]
        assert found.count("t-0") == 1


async def test_a_replica_deleted_while_it_waits_leaves_nothing_behind() -> None:
    async with scarce_side() as (side, disk):
        disk.refuses = lambda path: path.suffix == ".log"
        assert await become(side, state()) == {REFUSED}
        assert partition_directories(disk) == ["t-0"]
        assert await delete(side, TP) == {GOOD}
        await side.data._maintenance.purge()
        assert partition_directories(disk) == []
        assert side.hosted.offline == set()
        disk.refuses = nothing
        await asyncio.sleep(60)
        assert partition_directories(disk) == [], "it is not created any more"
        assert await become(side, state(topic_id=UUID(int=8))) == {GOOD}


async def test_a_stop_that_deletes_nothing_leaves_the_replica_waiting() -> None:
    async with scarce_side() as (side, disk):
        disk.refuses = everything
        assert await become(side, state(epoch=4)) == {REFUSED}
        stop = PartitionStop(TP, LeaderEpoch(5), delete=False)
        assert set((await side.services.transitions.stop_replicas([stop])).values()) == {REFUSED}
        late = PartitionStop(TP, LeaderEpoch(3), delete=True)
        codes = await side.services.transitions.stop_replicas([late])
        assert codes == {TP: ErrorCode.fenced_leader_epoch}
        disk.refuses = nothing
        await asyncio.sleep(1)
        assert side.hosted.offline == set()
        assert side.directories.get(TP) is not None


@pytest.mark.parametrize("shortage", ["descriptors", "memory"])
async def test_deletions_that_could_not_be_done_are_done_later(shortage: str) -> None:
    """Without memory nothing is renamed; without a descriptor the directory is not synced."""
    async with scarce_side() as (side, disk):
        await become(side, *map(state, MANY))
        disk.refuses = everything if shortage == "descriptors" else nothing
        disk.no_memory = shortage == "memory"
        assert await delete(side, *MANY) == {REFUSED}
        await asyncio.sleep(30)
        assert side.hosted.offline == set(MANY)
        disk.refuses, disk.no_memory = nothing, False
        await asyncio.sleep(LONGEST_MS / 1e3)
        assert side.hosted.offline == set()
        assert await notifications(side) == 1
        assert await delete(side, *MANY) == {GOOD}, "the controller asks again: nothing is left"
        disk.crash(3)
    async with data_side(disk=disk) as side:
        assert side.directories.logs == {}


async def test_files_of_a_deleted_log_are_removed_when_there_is_a_descriptor_for_it() -> None:
    async with scarce_side() as (side, disk):
        await side.lead()
        side.config.set_topic("t", {"file.delete.delay.ms": "0"})
        await delete(side, TP)
        disk.refuses = everything
        await side.data._maintenance.purge()
        disk.refuses = nothing
        assert len(partition_directories(disk)) == 1
        await asyncio.sleep(0.001)
        await side.data._maintenance.purge()
        assert partition_directories(disk) == []


async def test_after_an_error_of_the_disk_nothing_is_tried_again() -> None:
    async with scarce_side(("/a-data", "/b-data")) as (side, disk):
        disk.refuses = everything
        assert await become(side, state()) == {REFUSED}
        disk.refuses = nothing
        disk.sync_error = OSError(errno.EIO, "broken")
        await asyncio.sleep(60)
        assert side.hosted.offline == {TP}
        assert len(side.services.transitions.retries) == 0
        assert [str(directory.path) for directory in side.directories.online] == ["/b-data"]


async def test_a_log_that_was_cut_in_part_is_read_again_and_truncated_later() -> None:
    async with scarce_side() as (side, disk):
        partition = await side.lead(replicas=(ME, OTHER))
        side.config.set_topic("t", {"segment.ms": "100"})
        for number in range(6):
            assert (await side.append(b"%d" % number)).error_code is GOOD
            await asyncio.sleep(1)
        assert len(partition.log.segments) > 4
        partition.log.release()
        assert await become(side, state(epoch=1, leader=OTHER)) == {GOOD}
        assert partition.log.end_offset == 6
        with pytest.raises(OSError, match="open"):
            disk.refuses = lambda path: path.suffix in (".log", ".index")
            partition.log.truncate_to(2)
        side.hosted.fail_truncation(partition, _refusal(disk), 2)
        await asyncio.sleep(5)
        assert side.hosted.offline == {TP}
        assert await become(side, state(epoch=2, is_new=False)) == {REFUSED}, "not half a log"
        disk.refuses = nothing
        await asyncio.sleep(LONGEST_MS / 1e3)
        assert await become(side, state(epoch=2, is_new=False)) == {GOOD}
        again = side.hosted.get(TP)
        assert again.log is not partition.log
        assert 2 <= again.log.end_offset < 6
        end = again.log.end_offset
        assert (await side.append(b"last")).base_offset == end
        assert values_of(await side.read(0))[:1] == [b"0"]


def _refusal(disk: ScarceDisk) -> OSError:
    try:
        disk.read(Path("/data/t-0/00000000000000000000.log"))
    except OSError as error:
        return error
    raise AssertionError("it can be read")


@pytest.mark.spec("REP-69")
async def test_a_follower_that_cannot_truncate_follows_when_it_can() -> None:
    scarce = ScarceDisk()
    async with replica_pair(disks=(ForgettingDisk(), scarce)) as pair:
        follower = pair.data(OTHER)
        follower.run(follower.data._retries.run())
        for link in pair.links.values():
            link.cut = True
        await pair.lead(OTHER, epoch=0)
        for number in range(3):
            await follower.append(b"lost %d" % number)
        await pair.lead(ME, epoch=1)
        await pair.data(ME).append(b"kept")
        pair.partition(OTHER).log.release()
        scarce.refuses = lambda path: path.suffix == ".log"
        for link in pair.links.values():
            link.cut = False
        await pair.pass_ms(5_000)
        assert follower.hosted.offline == {TP}
        assert follower.directories.all[0].online
        scarce.refuses = nothing
        await pair.pass_ms(LONGEST_MS)
        assert follower.hosted.offline == set()
        await pair.lead(ME, epoch=2)
        await pair.pass_ms(5_000)
        assert pair.contents(OTHER) == pair.contents(ME)
        assert pair.partition(OTHER).log.end_offset == 1
