"""OffsetForLeaderEpoch: where a leader epoch ended."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.offset_for_leader_epoch import API
from ottla.model.errors import ErrorCode
from tests.fakes.api_side import ApiSide, Caller, api_side


async def ended(
    caller: Caller, epoch: int, version: int = -1, *, current: int = -1, topic: str = "t"
) -> Any:
    asked = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    topics = [{"topic": topic, "partitions": [asked]}]
    said = await caller.ask(API, version, replica_id=-1, topics=topics)
    return said.topics[0].partitions[0]


async def fill(side: ApiSide) -> None:
    """Offsets 0 and 1 by epoch 2, offset 2 by epoch 5; epoch 7 has written nothing."""
    for epoch, count in ((2, 2), (5, 1), (7, 0)):
        await side.data.lead(epoch=epoch)
        for _ in range(count):
            await side.data.append(b"x")


@pytest.mark.spec("WIRE-51", "REP-40")
@pytest.mark.parametrize("version", API.versions)
@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(2, (2, 2)), (3, (2, 2)), (5, (5, 3)), (6, (5, 3)), (7, (7, 3)), (8, (-1, -1)), (1, (1, 0))],
)
async def test_an_epoch_ended_where_the_next_one_began(
    version: int, epoch: int, answer: tuple[int, int]
) -> None:
    async with api_side() as side:
        await fill(side)
        one = await ended(side.caller, epoch, version)
        assert one.error_code is ErrorCode.none
        assert (one.leader_epoch, one.end_offset) == answer


async def test_who_leads_and_under_which_epoch_is_checked() -> None:
    async with api_side() as side:
        await fill(side)
        fenced = await ended(side.caller, 5, current=5)
        assert (fenced.error_code, fenced.end_offset) == (ErrorCode.fenced_leader_epoch, -1)
        unknown = await ended(side.caller, 5, current=8)
        assert unknown.error_code is ErrorCode.unknown_leader_epoch
        assert (await ended(side.caller, 5, current=7)).error_code is ErrorCode.none
        nowhere = await ended(side.caller, 5, topic="u")
        assert nowhere.error_code is ErrorCode.unknown_topic_or_partition
        await side.data.follow(epoch=9)
        elsewhere = await ended(side.caller, 5)
        assert elsewhere.error_code is ErrorCode.not_leader_or_follower
