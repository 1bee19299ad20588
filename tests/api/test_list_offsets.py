"""ListOffsets: where a partition begins and ends, and what stands at a time."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.list_offsets import API
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from tests.fakes.api_side import ApiSide, Caller, api_side
from tests.fakes.data_side import ME, OTHER, TP

TWO = (ME, OTHER)
LATEST, EARLIEST, LARGEST, LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6
START_MS = 1_700_000_000_000


async def asked(
    caller: Caller, timestamp: int, version: int = -1, *, epoch: int = -1, **top: Any
) -> Any:
    partition = {"partition_index": 0, "current_leader_epoch": epoch, "timestamp": timestamp}
    said = await caller.ask(
        API,
        version,
        replica_id=top.pop("replica_id", -1),
        isolation_level=top.pop("isolation_level", 0),
        topics=[{"name": top.pop("topic", "t"), "partitions": [partition]}],
        timeout=0,
    )
    return said.topics[0].partitions[0]


async def offset(caller: Caller, timestamp: int, version: int = -1, **how: Any) -> int:
    answer = await asked(caller, timestamp, version, **how)
    assert answer.error_code is ErrorCode.none, answer.error_code
    return int(answer.offset)


async def fill(side: ApiSide) -> None:
    """Three records, a second apart, from offset 0 on."""
    for index in range(3):
        await side.data.append(b"%d" % index)
        await side.data.until((index + 1) * 1_000)


@pytest.mark.spec("WIRE-40")
@pytest.mark.parametrize("version", API.versions)
async def test_every_version_finds_the_ends_and_a_time(version: int) -> None:
    async with api_side() as side:
        partition = await side.data.lead(epoch=4)
        await fill(side)
        partition.log.raise_start_offset(1)
        assert await offset(side.caller, EARLIEST, version) == 1
        assert await offset(side.caller, LATEST, version) == 3
        found = await asked(side.caller, START_MS + 500, version)
        assert (found.offset, wire.ms(found.timestamp)) == (1, START_MS + 1_000)
        if version >= 4:
            assert found.leader_epoch == 4


@pytest.mark.parametrize(
    ("timestamp", "first", "expected"),
    [(LARGEST, 7, 2), (LOCAL, 8, 0), (TIERED, 9, -1), (PENDING, 11, -1)],
)
async def test_newer_questions_need_newer_versions(
    timestamp: int, first: int, expected: int
) -> None:
    async with api_side() as side:
        await side.data.lead()
        await fill(side)
        for version in API.versions:
            answer = await asked(side.caller, timestamp, version)
            if version < first:
                assert answer.error_code is ErrorCode.unsupported_version
            else:
                assert (answer.error_code, answer.offset) == (ErrorCode.none, expected)


async def test_a_question_nobody_knows_is_refused() -> None:
    async with api_side() as side:
        await side.data.lead()
        answer = await asked(side.caller, -7)
        assert answer.error_code is ErrorCode.unsupported_version


async def test_what_is_newer_than_everything_is_at_no_offset() -> None:
    async with api_side() as side:
        await side.data.lead()
        empty = await asked(side.caller, LARGEST)
        assert (empty.error_code, empty.offset) == (ErrorCode.none, -1)
        await fill(side)
        later = await asked(side.caller, START_MS + 9_000)
        assert (later.error_code, later.offset) == (ErrorCode.none, -1)


@pytest.mark.spec("REP-61", "WIRE-20")
async def test_the_end_is_what_the_reader_may_see() -> None:
    async with api_side() as side:
        await side.data.lead(replicas=TWO)
        await fill(side)
        side.data.start_fetch(1, replica_id=OTHER)
        header: Any = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
        assert await offset(side.caller, LATEST) == 1
        assert await offset(side.caller, LATEST, replica_id=OTHER) == 3
        assert (await asked(side.caller, LARGEST)).offset == -1, "it is not committed yet"
        await side.data.start_append(records=side.data.batch(b"x", transactional=True, **header))
        side.data.start_fetch(4, replica_id=OTHER)
        assert await offset(side.caller, LATEST) == 4
        assert await offset(side.caller, LATEST, isolation_level=1) == 3


async def test_a_partition_that_is_asked_for_twice_is_refused_once() -> None:
    async with api_side() as side:
        await side.data.lead()
        twice = [
            {"partition_index": 0, "current_leader_epoch": -1, "timestamp": when}
            for when in (LATEST, EARLIEST)
        ]
        topics = [{"name": "t", "partitions": twice}]
        said = await side.caller.ask(
            API, replica_id=-1, isolation_level=0, topics=topics, timeout=0
        )
        [part] = said.topics[0].partitions
        assert part.error_code is ErrorCode.invalid_request


async def test_epochs_and_places_are_checked_for_each_partition() -> None:
    async with api_side() as side:
        await side.data.lead(epoch=3)
        codes = {
            ErrorCode.fenced_leader_epoch: await asked(side.caller, LATEST, epoch=2),
            ErrorCode.unknown_leader_epoch: await asked(side.caller, LATEST, epoch=4),
            ErrorCode.unknown_topic_or_partition: await asked(side.caller, LATEST, topic="u"),
        }
        assert all(answer.error_code is code for code, answer in codes.items())
        await side.data.follow(epoch=5)
        elsewhere = await asked(side.caller, LATEST)
        assert elsewhere.error_code is ErrorCode.not_leader_or_follower
        shown = await asked(side.caller, LATEST, replica_id=-2)
        assert shown.error_code is ErrorCode.none, "a debugger may look at any replica"


@pytest.mark.parametrize(
    ("version", "code"),
    [(4, ErrorCode.leader_not_available), (5, ErrorCode.offset_not_available)],
)
async def test_a_new_leader_does_not_say_less_than_the_old_one_did(
    version: int, code: ErrorCode
) -> None:
    async with api_side() as side:
        await side.data.lead(replicas=TWO)
        await fill(side)
        await side.data.lead(epoch=1, replicas=TWO)
        assert (await asked(side.caller, LATEST, version)).error_code is code
        assert (await asked(side.caller, START_MS, version)).error_code is code
        assert await offset(side.caller, EARLIEST, version) == 0
        side.data.start_fetch(3, replica_id=OTHER)
        assert await offset(side.caller, LATEST, version) == 3


async def test_a_disk_that_fails_is_said_and_takes_the_directory_offline() -> None:
    async with api_side(dirs=("/a", "/b")) as side:
        await side.data.lead()
        await fill(side)
        side.data.disk.kill()
        answer = await asked(side.caller, START_MS + 1)
        assert answer.error_code is ErrorCode.kafka_storage_error
        assert side.data.hosted.offline == {TP}
