"""A broker that may open few files: what does not fit waits or is refused, no directory fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from ottla.log.aborted_transactions import find_aborted
from ottla.log.files import RealDisk
from ottla.log.flush import FILES_AT_ONCE
from ottla.log.index.txn_index import AbortedTxn
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.replica.internal_append import InternalAppender
from ottla.replica.partition import HostedPartition
from tests.fakes.data_side import DataSide, data_side, values_of
from tests.fakes.descriptors import few_descriptors, held_open, no_descriptors
from tests.fakes.sync_ring import FakeRing

PARTITIONS = 200
FILES, FLUSHED_FILES, ONE_FLUSH = 50, 30, 8
GOOD, REFUSED = ErrorCode.none, ErrorCode.kafka_storage_error


@asynccontextmanager
async def real_side(
    path: Path, flushes: str = "all", ring: FakeRing | None = None
) -> AsyncIterator[DataSide]:
    """On the real file system. A segment rolls with the first batch after a second."""
    async with data_side(
        {"flush.before.ack": flushes},
        disk=cast("Any", RealDisk(FILES)),
        dirs=(str(path),),
        ring=ring,
        flush_files=FLUSHED_FILES,
    ) as side:
        side.config.set_topic("t", {"segment.ms": "100"})
        yield side
        if ring is not None:
            asyncio.get_running_loop().remove_reader(ring.fileno())
            ring.close()


def is_online(side: DataSide) -> bool:
    return all(directory.online for directory in side.directories.all)


def start_transactions(side: DataSide, hosted: list[HostedPartition]) -> list[asyncio.Future[Any]]:
    batch = side.batch(b"x", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    return [
        side.start_append(key=one.key, acks=-1, timeout_ms=60_000, records=batch) for one in hosted
    ]


def abort_transactions(side: DataSide, hosted: list[HostedPartition]) -> list[ErrorCode]:
    """As WriteTxnMarkers does, all in one turn; the codes of the reply, as they come."""
    marker = build_marker(
        EndTxnMarker(ControlType.ABORT, 0),
        producer_id=9,
        producer_epoch=0,
        timestamp=side.clock.wall_ms(),
    )
    codes: list[ErrorCode] = []
    for partition in hosted:
        InternalAppender(side.hosted).append(partition, marker, 60_000, codes.append)
    return codes


@pytest.mark.own_process
@pytest.mark.parametrize("with_ring", [False, True], ids=["threads", "ring"])
async def test_segments_of_many_partitions_that_roll_at_once_are_flushed_in_turn(
    tmp_path: Path, with_ring: bool
) -> None:
    async with real_side(tmp_path, ring=FakeRing() if with_ring else None) as side:
        hosted = [await side.lead(TopicPartition("t", number)) for number in range(PARTITIONS)]
        with few_descriptors(FILES + FLUSHED_FILES + 40):
            for started in start_transactions(side, hosted):
                assert (await started).error_code is GOOD
            await asyncio.sleep(1)
            side.pool.held = True
            codes = abort_transactions(side, hosted)
            while len(codes) < PARTITIONS:
                await side.settle()
                assert held_open(tmp_path) <= FILES + FLUSHED_FILES + ONE_FLUSH
                side.pool.run_all()
            assert set(codes) == {GOOD}
            assert is_online(side)
        assert all(len(partition.log.segments) == 2 for partition in hosted)
        assert all(partition.log.recovery_point == 2 for partition in hosted)


async def test_the_kernel_syncs_no_more_files_at_a_time_either(tmp_path: Path) -> None:
    ring = FakeRing(entries=PARTITIONS)
    async with real_side(tmp_path, ring=ring) as side:
        hosted = [await side.lead(TopicPartition("t", number)) for number in range(PARTITIONS)]
        for one in hosted:
            await side.append(b"first", key=one.key, acks=-1)
        ring.held = True
        waiting = [
            side.start_append(b"a", key=one.key, acks=-1, timeout_ms=60_000) for one in hosted
        ]
        turns = 0
        while not all(one.done() for one in waiting) and turns < PARTITIONS:
            await side.settle()
            turns += 1
            assert len(ring.waiting) <= FLUSHED_FILES
            ring.run_all()
            await side.settle()
        assert {(await one).error_code for one in waiting} == {GOOD}
        assert ring.taken >= PARTITIONS


@pytest.mark.own_process
async def test_without_a_descriptor_an_append_is_refused_and_works_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with real_side(tmp_path, "never") as side:
        partition = await side.lead()
        await side.append(b"a")
        await asyncio.sleep(1)
        partition.log.release()
        with no_descriptors():
            for _ in range(3):
                assert (await side.append(b"b")).error_code is REFUSED
        [line] = [r.getMessage() for r in caplog.records if "descriptors" in r.getMessage()]
        assert "requests are refused" in line
        assert "ulimit -n" in line
        assert is_online(side)
        assert (await side.append(b"c")).base_offset == 1
        assert values_of(await side.read()) == [b"a"]
        assert values_of(await side.read(1)) == [b"c"]
        assert len(partition.log.segments) == 2


@pytest.mark.own_process
async def test_without_a_descriptor_a_fetch_is_refused_and_works_later(tmp_path: Path) -> None:
    async with real_side(tmp_path, "never") as side:
        partition = await side.lead()
        await side.append(b"a")
        partition.log.release()
        with no_descriptors():
            assert (await side.read()).error_code is REFUSED
        assert is_online(side)
        assert values_of(await side.read()) == [b"a"]


@pytest.mark.own_process
async def test_a_flush_that_finds_no_descriptor_is_repeated_until_it_does(tmp_path: Path) -> None:
    """First none for the files it would sync, then none for the directory."""
    async with real_side(tmp_path) as side:
        partition = await side.lead()
        assert (await side.append(b"a", acks=-1)).error_code is GOOD
        await asyncio.sleep(1)
        waiting = side.start_append(b"b", acks=-1, timeout_ms=60_000)  # it rolls
        with no_descriptors():
            await asyncio.sleep(5)
            assert not waiting.done()
        side.pool.held = True
        await asyncio.sleep(2)
        assert side.pool.waiting == 1
        with no_descriptors():
            for _ in range(3):
                side.pool.run_all()
                await asyncio.sleep(2)
                assert side.pool.waiting == 1, "the same flush again"
                assert not waiting.done()
        side.pool.run_all()
        assert (await waiting).error_code is GOOD
        assert is_online(side)
        assert partition.log.recovery_point == 2


@pytest.mark.own_process
async def test_an_abort_that_finds_no_descriptor_for_its_index_is_not_forgotten(
    tmp_path: Path,
) -> None:
    async with real_side(tmp_path, "never") as side:
        partition = await side.lead()
        [started] = start_transactions(side, [partition])
        assert (await started).error_code is GOOD
        held = partition.log.segments.active.file().source()  # closing it frees no descriptor
        with no_descriptors():
            assert abort_transactions(side, [partition]) == [GOOD]
        del held
        assert find_aborted(partition.log, 0, 2) == [AbortedTxn(9, 0, 1, 2)]
        assert is_online(side)


async def test_one_partition_with_many_unflushed_segments_is_flushed_in_parts(
    tmp_path: Path,
) -> None:
    async with real_side(tmp_path, "never") as side:
        partition = await side.lead()
        side.pool.held = True
        for number in range(PARTITIONS):
            await asyncio.sleep(1)
            assert (await side.append(b"%d" % number)).error_code is GOOD
        side.pool.run_all()  # the flush of the first two; what rolls during a flush requests none
        await side.settle()
        partition.log.release()
        await asyncio.sleep(1)
        await side.append(b"last")
        most = turns = 0
        while partition.log.recovery_point <= PARTITIONS and turns < PARTITIONS:
            await side.settle()
            most, turns = max(most, held_open(tmp_path)), turns + 1
            side.pool.run_all()
        assert most <= FILES + 2 * FILES_AT_ONCE
        assert partition.log.recovery_point == PARTITIONS + 1
        assert len(partition.log.segments) == PARTITIONS + 1
        assert is_online(side)
