"""In-sync sets in the metadata store: compare-and-set, lost answers, and their announcement."""

from __future__ import annotations

import asyncio
import errno

import pytest

from ottla.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from ottla.replica.isr_writer import LATEST_MS, QUIET_MS, StoreIsrWriter, announcement_due
from ottla.store import paths
from ottla.store.memory import MemoryStore
from ottla.store.nodes import PartitionsNode, StateNode
from ottla.store.port import Session, StoreUnavailable
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side

BOTH, ALONE = frozenset({ME, OTHER}), frozenset({ME})


class LosesAnswers(MemoryStore):
    """Each write is done, and the first is not told so."""

    lost = False

    async def set(self, path: str, data: bytes, version: int = -1) -> int:
        written = await super().set(path, data, version)
        if not self.lost:
            self.lost = True
            raise StoreUnavailable(errno.ETIMEDOUT, "no answer", path)
        return written


async def state(side: DataSide) -> tuple[StateNode, int]:
    node = await side.store.get(paths.partition_state(TP))
    assert node is not None
    return StateNode.decode(node.data), node.version


async def announced(side: DataSide) -> list[list[TopicPartition]]:
    names = await side.store.children(paths.ISR_CHANGES)
    nodes = await side.store.get_many([f"{paths.ISR_CHANGES}/{name}" for name in sorted(names)])
    return [list(PartitionsNode.decode(node.data).partitions) for node in nodes if node]


@pytest.mark.spec("REP-29", "REP-30")
async def test_a_set_is_written_under_the_version_it_rests_on() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=(ME, OTHER))
        writer = StoreIsrWriter(side.store, side.clock)
        version = partition.require_leadership().version
        assert await writer.write(partition, ALONE, version) == version + 1
        stored, at = await state(side)
        assert (stored.isr, stored.leader, stored.leader_epoch) == ((ME,), ME, 0)
        assert at == version + 1


@pytest.mark.spec("REP-29")
async def test_a_set_is_not_written_over_what_the_controller_decided_meanwhile() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=(ME, OTHER))
        writer = StoreIsrWriter(side.store, side.clock)
        path = paths.partition_state(TP)
        newer = StateNode(OTHER, LeaderEpoch(1), (OTHER,), ControllerEpoch(2))
        await side.store.set(path, newer.encode())
        assert await writer.write(partition, ALONE, 1) is None
        assert (await state(side))[0] == newer
        await side.store.delete(path)
        assert await writer.write(partition, ALONE, 0) is None


async def test_an_answer_that_was_lost_does_not_lose_the_write() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=(ME, OTHER))
        store = LosesAnswers(side.ensemble)
        await store.start()
        writer = StoreIsrWriter(store, side.clock)
        version = partition.require_leadership().version
        assert await writer.write(partition, ALONE, version) == version + 1


@pytest.mark.parametrize("state", [Session.SUSPENDED, Session.EXPIRED])
async def test_a_store_out_of_reach_is_asked_again_until_it_answers(state: Session) -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=(ME, OTHER))
        writer = StoreIsrWriter(side.store, side.clock)
        side.store.turn(state)
        version = partition.require_leadership().version

        async def back() -> None:
            await asyncio.sleep(10)
            side.store.turn(Session.CONNECTED)

        side.run(back())
        assert await writer.write(partition, ALONE, version) == version + 1
        assert side.clock.mono_ms() >= 10_000


@pytest.mark.spec("REP-31")
@pytest.mark.parametrize(
    ("pending", "changed_ago", "announced_ago", "expected"),
    [
        (False, 10 * QUIET_MS, 10 * LATEST_MS, False),
        (True, QUIET_MS + 1, 0, True),
        (True, QUIET_MS, 0, False),
        (True, 0, LATEST_MS, False),
        (True, 0, LATEST_MS + 1, True),
    ],
)
def test_changes_are_announced_after_a_quiet_spell_or_after_a_minute(
    pending: bool, changed_ago: int, announced_ago: int, expected: bool
) -> None:
    now = 1_000_000
    assert announcement_due(now, pending, now - changed_ago, now - announced_ago) is expected


@pytest.mark.spec("REP-31", "REP-34")
async def test_one_announcement_names_every_partition_that_changed() -> None:
    async with data_side() as side:
        writer = StoreIsrWriter(side.store, side.clock)
        side.run(writer.run())
        keys = [TopicPartition("t", 1), TP]
        for key in keys:
            partition = await side.lead(key, replicas=(ME, OTHER))
            await writer.write(partition, ALONE, partition.require_leadership().version)
        await side.until(4_000)
        assert await announced(side) == [], "somebody may be flapping"
        await side.until(10_000)
        assert await announced(side) == [sorted(keys)]
        await side.until(200_000)
        assert await announced(side) == [sorted(keys)], "once is enough"


@pytest.mark.spec("REP-31", "REP-32")
async def test_a_flapping_set_is_announced_once_a_minute() -> None:
    async with data_side() as side:
        writer = StoreIsrWriter(side.store, side.clock)
        side.run(writer.run())
        partition = await side.lead(replicas=(ME, OTHER))
        version = partition.require_leadership().version
        sets = [ALONE, BOTH]
        while side.clock.mono_ms() < 130_000:
            isr = sets[version % 2]
            written = await writer.write(partition, isr, version)
            assert written is not None
            version = written
            await asyncio.sleep(1)
        assert len(await announced(side)) == 2


async def test_an_announcement_that_did_not_get_through_is_made_later() -> None:
    async with data_side() as side:
        writer = StoreIsrWriter(side.store, side.clock)
        partition = await side.lead(replicas=(ME, OTHER))
        await writer.write(partition, ALONE, partition.require_leadership().version)
        side.store.turn(Session.SUSPENDED)
        await writer.announce()
        side.store.turn(Session.CONNECTED)
        assert await announced(side) == []
        await writer.announce()
        assert await announced(side) == [[TP]]


async def test_brokers_are_written_in_order_so_that_equal_sets_are_equal_bytes() -> None:
    async with data_side() as side:
        replicas = tuple(map(BrokerId, (0, 9, 4, 2)))
        partition = await side.lead(replicas=replicas)
        writer = StoreIsrWriter(side.store, side.clock)
        await writer.write(partition, frozenset(replicas), partition.require_leadership().version)
        assert (await state(side))[0].isr == tuple(sorted(replicas))
