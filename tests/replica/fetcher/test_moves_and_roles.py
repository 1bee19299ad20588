"""Followers whose log moves to another directory, or whose role changes while they truncate."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.model.errors import ErrorCode
from tests.fakes.data_side import ME, OTHER, TP
from tests.fakes.replica_pair import ReplicaPair, replica_pair
from tests.log.memory_directories import values

DIRS = ("/a", "/b")
B = Path("/b")


def start_move(pair: ReplicaPair) -> None:
    moves = pair.data(OTHER).services.moves
    pair.data(OTHER).run(moves.run())
    moves.begin(TP, B)


@pytest.mark.spec("REP-75")
@pytest.mark.parametrize("policy", ["never", "all"])
async def test_a_follower_moves_to_another_directory_and_misses_nothing(policy: str) -> None:
    async with replica_pair({"flush.before.ack": policy}, dirs=DIRS) as pair:
        await pair.lead(ME, epoch=0)
        sent = [b"%d" % number for number in range(200)]
        for at, value in enumerate(sent):
            if at == 50:
                start_move(pair)
            outcome = await pair.data(ME).start_append(value, acks=-1, timeout_ms=60_000)
            assert (outcome.error_code, outcome.base_offset) == (ErrorCode.none, at)
        await pair.pass_ms(2_000)
        follower = pair.partition(OTHER).log
        assert follower.dir == B / "t-0"
        assert values(follower) == sent
        assert pair.contents(OTHER) == pair.contents(ME)
        await pair.lead(OTHER, epoch=1)
        assert (await pair.data(OTHER).start_append(b"x", acks=-1)).base_offset == 200


@pytest.mark.spec("REP-75", "REP-39")
async def test_a_copy_being_made_is_truncated_with_the_follower() -> None:
    async with replica_pair(dirs=DIRS) as pair:
        await pair.lead(OTHER, epoch=0)
        await pair.data(OTHER).start_append(b"both", acks=-1)
        pair.links[OTHER].cut = True
        for _ in range(20):
            await pair.data(OTHER).append(b"never replicated")
        pair.data(OTHER).pool.held = True  # the copy cannot be completed
        start_move(pair)
        await pair.pass_ms(1_000)
        await pair.lead(ME, epoch=1, to=(ME,))
        await pair.data(ME).append(b"kept")
        await pair.lead(ME, epoch=1, to=(OTHER,))
        pair.data(OTHER).pool.held = False
        pair.data(OTHER).pool.run_all()
        await pair.pass_ms(5_000)
        follower = pair.partition(OTHER).log
        assert follower.dir == B / "t-0"
        assert values(follower) == [b"both", b"kept"]
        assert pair.contents(OTHER) == pair.contents(ME)


@pytest.mark.spec("REP-39", "REP-69")
@pytest.mark.parametrize("leads", [True, False])
async def test_a_role_that_changes_during_a_truncation_begins_when_that_is_durable(
    leads: bool,
) -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.data(ME).start_append(b"both", acks=-1)
        pair.links[ME].cut = True
        await pair.data(ME).append(b"lost")
        await pair.lead(OTHER, epoch=1, to=(OTHER,))
        await pair.data(OTHER).append(b"new")
        pair.data(ME).pool.held = True
        await pair.lead(OTHER, epoch=1, to=(ME,))
        await pair.pass_ms(1_000)
        partition = pair.partition(ME)
        assert partition.truncating is not None
        leader = ME if leads else OTHER
        change = asyncio.ensure_future(pair.lead(leader, epoch=2, to=(ME,)))
        await pair.pass_ms(1_000)
        assert not change.done()
        assert partition.leader_epoch == 1
        pair.data(ME).pool.held = False
        pair.data(ME).pool.run_all()
        await change
        assert partition.leader_epoch == 2
        assert partition.truncating is None
        assert values(partition.log)[:1] == [b"both"]
        assert b"lost" not in values(partition.log)
        pair.links[ME].cut = False
        await pair.lead(leader, epoch=2, to=(OTHER,))
        await pair.pass_ms(3_000)
        assert pair.contents(ME) == pair.contents(OTHER)
