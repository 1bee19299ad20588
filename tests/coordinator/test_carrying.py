"""What a decision asks for is done in order; what may wait for company stands where it should."""

from __future__ import annotations

from ottla.coordinator.carrying import OWED_MS
from ottla.coordinator.txn.records import decode
from ottla.coordinator.txn.state import Producer, Transaction, TxnState
from ottla.protocol.records.batch import walk
from ottla.protocol.records.record import read_records
from tests.coordinator.txn.rig import ID, STATE, TxnSide, txn_side
from tests.fakes.virtual_loop import run


def written(rig: TxnSide) -> list[list[TxnState]]:
    """The states in the log of transactions, batch by batch."""
    log = rig.side.hosted.get(STATE).log
    read = log.read(0, 1 << 20, end=log.end_offset, min_one=True)
    assert read.slice is not None
    view = memoryview(read.slice.read())
    batches = []
    for at, header in walk(view):
        whats = [decode(r.key or b"", r.value) for r in read_records(view[at : at + header.size])]
        batches.append([what.state for what in whats if isinstance(what, Transaction)])
    return batches


async def one_committed(rig: TxnSide) -> Producer:
    me = await rig.init()
    await rig.add(me)
    await rig.end(me, True)
    assert (await rig.txns.describe(ID)).state is TxnState.COMPLETE_COMMIT
    return me


BEFORE = [[TxnState.EMPTY], [TxnState.ONGOING], [TxnState.PREPARE_COMMIT]]


def test_what_is_written_lazily_stands_in_front_of_what_comes_next() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            me = await one_committed(rig)
            assert written(rig) == BEFORE
            await rig.add(me)
            assert written(rig) == [*BEFORE, [TxnState.COMPLETE_COMMIT, TxnState.ONGOING]]
            await rig.side.until(10_000)
            assert len(written(rig)) == 4, "and it is written once"

    run(story())


def test_what_is_written_lazily_is_written_soon_if_nothing_comes() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            await one_committed(rig)
            await rig.side.until(OWED_MS)
            assert written(rig) == [*BEFORE, [TxnState.COMPLETE_COMMIT]]

    run(story())


def test_a_broker_that_stops_owes_nothing() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            await one_committed(rig)
            rig.parts.runtime.close()
            assert written(rig) == [*BEFORE, [TxnState.COMPLETE_COMMIT]]

    run(story())


def test_what_could_not_be_written_is_still_owed() -> None:
    async def story() -> None:
        async with txn_side() as rig:
            await one_committed(rig)
            topic = STATE.topic
            rig.side.config.set_topic(topic, {"max.message.bytes": "70"})
            await rig.side.until(10 * OWED_MS)
            assert written(rig) == BEFORE
            rig.side.config.set_topic(topic, {})
            await rig.side.until(20 * OWED_MS)
            assert written(rig) == [*BEFORE, [TxnState.COMPLETE_COMMIT]]

    run(story())
