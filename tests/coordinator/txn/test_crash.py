"""What a power cut leaves of transactions: all of each, or nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import pytest

from ottla.coordinator.txn.state import AT_REST
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import walk
from ottla.protocol.records.control import ControlType, control_type
from ottla.protocol.records.record import read_records
from ottla.replica.fetch.options import Isolation
from tests.coordinator.txn.rig import ID, OTHER_TP, V2, TxnSide, txn_side
from tests.fakes.data_side import TP, fetch_from
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.sync_ring import FakeRing

FLUSHED = {"flush.before.ack": "auto"}
KEYS = (TP, OTHER_TP)


class Client:
    """Runs transactions over both partitions, and remembers how each ended as far as it knows."""

    def __init__(self, rig: TxnSide, dice: Random, version: int) -> None:
        self._rig = rig
        self._dice = dice
        self._version = version
        self.committed: set[bytes] = set()
        self.aborted: set[bytes] = set()

    async def run(self) -> None:
        rig, version = self._rig, self._version
        who = await rig.init()
        sequence = 0
        for number in range(1_000):
            value = b"%d" % number
            if version < 2:
                await rig.add(who, *KEYS)
            for key in KEYS:
                how = {"txn": V2} if version else {}
                code = await rig.write(who, value, key=key, sequence=sequence, **how)
                assert code is ErrorCode.none
            commit = self._dice.random() < 0.7
            who = await rig.end(who, commit, version=version)
            sequence = 0 if version else sequence + 1
            (self.committed if commit else self.aborted).add(value)


async def seen(rig: TxnSide, key: TopicPartition) -> set[bytes]:
    """What a reader of committed data takes: not the records of transactions named aborted."""
    asked = rig.side.fetch(fetch_from(0, key), max_wait_ms=0, isolation=Isolation.READ_COMMITTED)
    [fetched] = await asked
    part = fetched.part
    assert part.error_code is ErrorCode.none
    assert part.last_stable_offset == part.high_watermark, "readers wait for ever"
    content = part.records
    view = memoryview(content if isinstance(content, bytes) else content.read())  # type: ignore[union-attr]
    coming = sorted(part.aborted or (), key=lambda one: one[1])
    dropped: set[int] = set()
    values: set[bytes] = set()
    for at, header in walk(view):
        while coming and coming[0][1] <= header.last_offset:
            dropped.add(coming.pop(0)[0])
        records = list(read_records(view[at : at + header.size]))
        if header.is_control:
            if control_type(records[0].key) == ControlType.ABORT:
                dropped.discard(header.producer_id)
        elif header.producer_id not in dropped:
            values |= {record.value or b"" for record in records}
    return values


async def first_life(
    disk: ForgettingDisk, dice: Random, version: int, *, by_kernel: bool = False
) -> Client:
    ring = FakeRing() if by_kernel else None
    async with txn_side(FLUSHED, disk=disk, ring=ring) as rig:
        client = Client(rig, dice, version)
        running = asyncio.ensure_future(client.run())
        for _ in range(dice.randint(10, 600)):
            await asyncio.sleep(0)
        rig.side.pool.held = True  # no flush ends any more: nothing is acknowledged
        if ring is not None:
            ring.held = True
        await rig.side.settle()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return client


@pytest.mark.spec("TXN-18", "TXN-22", "TXN-38", "TXN-41")
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("by_kernel", [False, True])
@pytest.mark.parametrize("seed", range(40))
async def test_after_a_power_cut_each_transaction_is_there_whole_or_not_at_all(
    seed: int, by_kernel: bool, version: int
) -> None:
    disk = ForgettingDisk()
    client = await first_life(disk, Random(seed), version, by_kernel=by_kernel)
    disk.crash(seed)
    async with txn_side(FLUSHED, disk=disk, first_producer_id=1_000, epoch=1) as rig:
        await rig.side.until(100_000)  # beyond any timeout
        ours, others = [await seen(rig, key) for key in KEYS]
        assert ours == others, "a torn transaction"
        assert client.committed <= ours, "a lost transaction"
        assert not client.aborted & ours, "an aborted transaction came back"
        assert len(ours - client.committed) <= 1  # the one under way
        assert all(txn.state in AT_REST for txn in rig.txns.list())
        who = await rig.init()
        await rig.add(who, *KEYS)
        assert await rig.write(who, b"next") is ErrorCode.none
        await rig.end(who, True)
        assert await seen(rig, TP) == ours | {b"next"}


async def test_the_lives_above_reach_every_state() -> None:
    """They can fail: transactions are cut in all their states."""

    async def state_after(seed: int) -> str:
        disk = ForgettingDisk()
        await first_life(disk, Random(seed), 0)
        disk.crash(seed)
        async with txn_side(FLUSHED, disk=disk, epoch=1) as rig:
            found = [txn.state.label for txn in rig.txns.list() if txn.id == ID]
            return found[0] if found else "none"

    reached = {await state_after(seed) for seed in range(40)}
    assert reached >= {"Ongoing", "CompleteCommit"}
