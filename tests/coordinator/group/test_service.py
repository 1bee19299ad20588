"""What handlers call: groups on a real log, answered when they should be."""

from __future__ import annotations

import asyncio

import pytest

from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.model.errors import ErrorCode, KafkaError
from tests.coordinator.group.group_members import ASK, joined
from tests.coordinator.group_coordinator import OFFSETS, coordinating


@pytest.mark.spec("GRP-23")
async def test_a_group_must_have_a_name() -> None:
    async with coordinating() as made:
        calls = [
            made.groups.join("", ASK),
            made.groups.leave("", []),
            made.groups.fetch("", None, stable=False),
            made.groups.describe(""),
            made.groups.delete(""),
        ]
        for call in calls:
            with pytest.raises(KafkaError) as refused:
                await call
            assert refused.value.code is ErrorCode.invalid_group_id


async def test_a_group_lives_from_its_first_member_to_its_deletion() -> None:
    async with coordinating() as made:
        reply = await joined(made, "g")
        assert (
            await made.groups.heartbeat("g", MemberIdentity(reply.member_id), 1) is ErrorCode.none
        )
        shown = await made.groups.describe("g")
        assert shown is not None and shown.state == "Stable"
        assert [one.state for one in made.groups.overviews({"stable"}, {"classic"})] == ["Stable"]
        assert await made.groups.leave("g", [MemberIdentity(reply.member_id)]) == [ErrorCode.none]
        await made.groups.delete("g")
        assert await made.groups.describe("g") is None
        assert list(made.groups.overviews(set(), set())) == []


async def test_all_offsets_are_read_when_none_are_named() -> None:
    async with coordinating() as made:
        await made.commit(5)
        await made.commit(6, partition=3)
        found = await made.groups.fetch("g", None, stable=True)
        assert {index: one.offset for index, one in found["t"].items()} == {0: 5, 3: 6}  # type: ignore[union-attr]
        assert await made.groups.fetch("other", None, stable=True) == {}
        assert await made.groups.delete_offsets("g", [("t", 0)]) == {}
        assert await made.committed() is None


@pytest.mark.spec("GRP-78")
async def test_a_member_that_waits_is_answered_when_the_broker_stops() -> None:
    async with coordinating() as made:
        reply = await joined(made, "g")
        waiting = asyncio.ensure_future(made.groups.join("g", ASK))
        await made.side.settle()
        assert not waiting.done()
        made.runtime.close()
        assert (await waiting).error is ErrorCode.not_coordinator
        del reply


@pytest.mark.spec("GRP-02", "GRP-06")
async def test_the_partition_of_a_group_is_where_its_records_go() -> None:
    async with coordinating() as made:
        assert made.groups.partition_of("g") == OFFSETS.partition
        await made.commit(5)
        assert made.side.hosted.get(OFFSETS).log.end_offset == 1
