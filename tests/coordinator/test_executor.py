"""What a decision asks for is done in order; what may wait for company stands where it should."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.coordinator.executor import DEFER_MS, Executor, OwnedShard
from ottla.coordinator.internal_topic_log import InternalTopicLog
from ottla.coordinator.outcome import CoordinatorRecord, Outcome
from ottla.coordinator.txn.end_transaction import EndRequest
from ottla.coordinator.txn.records import decode
from ottla.coordinator.txn.state import Producer, Transaction, TxnState
from ottla.delay.timers import Timers
from ottla.log.log import Log
from ottla.model.ids import Offset, ProducerId
from ottla.protocol.records.batch import walk
from ottla.protocol.records.record import Record, read_records
from tests.coordinator.txn.rig import ID, STATE, TxnSide, txn_side
from tests.fakes.data_side import TP, data_side


def batches(log: Log) -> list[list[Record]]:
    read = log.read(0, 1 << 20, end=log.end_offset, min_one=True)
    assert read.slice is not None
    view = memoryview(read.slice.read())
    return [list(read_records(view[at : at + header.size])) for at, header in walk(view)]


def written(rig: TxnSide) -> list[list[TxnState]]:
    """The states in the log of transactions, batch by batch."""
    return [
        [
            what.state
            for what in (decode(one.key or b"", one.value) for one in batch)
            if isinstance(what, Transaction)
        ]
        for batch in batches(rig.side.hosted.get(STATE).log)
    ]


async def one_committed(rig: TxnSide) -> Producer:
    me = await rig.init()
    await rig.add(me)
    await rig.end(me, True)
    assert (await rig.txns.describe(ID)).state is TxnState.COMPLETE_COMMIT
    return me


BEFORE = [[TxnState.EMPTY], [TxnState.ONGOING], [TxnState.PREPARE_COMMIT]]


async def test_what_is_written_lazily_stands_in_front_of_what_comes_next() -> None:
    async with txn_side() as rig:
        me = await one_committed(rig)
        assert written(rig) == BEFORE
        await rig.add(me)
        assert written(rig) == [*BEFORE, [TxnState.COMPLETE_COMMIT, TxnState.ONGOING]]
        await rig.side.until(10_000)
        assert len(written(rig)) == 4, "and it is written once"


async def test_what_is_written_lazily_is_written_soon_if_nothing_comes() -> None:
    async with txn_side() as rig:
        await one_committed(rig)
        await rig.side.until(DEFER_MS)
        assert written(rig) == [*BEFORE, [TxnState.COMPLETE_COMMIT]]


async def test_a_broker_that_stops_owes_nothing() -> None:
    async with txn_side() as rig:
        await one_committed(rig)
        rig.parts.runtime.close()
        assert written(rig) == [*BEFORE, [TxnState.COMPLETE_COMMIT]]


async def test_what_could_not_be_written_is_still_owed() -> None:
    async with txn_side() as rig:
        await one_committed(rig)
        topic = STATE.topic
        rig.side.config.set_topic(topic, {"max.message.bytes": "70"})
        await rig.side.until(10 * DEFER_MS)
        assert written(rig) == BEFORE
        rig.side.config.set_topic(topic, {})
        await rig.side.until(20 * DEFER_MS)
        assert written(rig) == [*BEFORE, [TxnState.COMPLETE_COMMIT]]


async def test_what_is_owed_is_written_in_several_batches_where_one_cannot_hold_it() -> None:
    async with txn_side({"flush.before.ack": "all"}) as rig:
        ids = [f"tx{number}" for number in range(6)]
        who = {id: await rig.init(id) for id in ids}
        for id in ids:
            await rig.txns.add(id, who[id], frozenset({TP}))
        rig.side.pool.held = True  # so that all are decided before the first is completed
        ends = [asyncio.ensure_future(rig.txns.end(id, EndRequest(who[id], True))) for id in ids]
        await rig.side.settle()
        rig.side.pool.held = False
        rig.side.pool.run_all()
        await asyncio.gather(*ends)
        before = len(written(rig))
        rig.side.config.set_topic(STATE.topic, {"max.message.bytes": "250"})
        await rig.txns.add(ids[0], who[ids[0]], frozenset({TP}))
        owed = written(rig)[before:]
        assert len(owed) > 1
        assert [state for batch in owed for state in batch] == [
            *[TxnState.COMPLETE_COMMIT] * 6,
            TxnState.ONGOING,
        ]


class Excitable:
    """A shard whose replay asks for more to be written at once, as whoever it wakes might."""

    def __init__(self) -> None:
        self.replayed: list[tuple[str, int]] = []
        self.on_replay: Callable[[str], object] = lambda what: None

    def replay(self, what: str, offset: Offset, producer_id: ProducerId) -> None:
        self.replayed.append((what, offset))
        self.on_replay(what)


async def test_what_a_replay_sets_off_stands_behind_it_and_nothing_is_written_twice() -> None:
    async with data_side() as side:
        partition = await side.lead(STATE)
        shard = Excitable()
        owned = OwnedShard(partition, shard)  # type: ignore[type-var]
        timers = Timers(side.clock, asyncio.get_running_loop())
        topic_log = InternalTopicLog(side.hosted, timeout_ms=1_000)
        executor = Executor[Any](topic_log, timers, side.clock, lambda _: True)

        def say(*whats: str, lazily: bool = False) -> Outcome[None]:
            records = [CoordinatorRecord(what, what.encode(), b"") for what in whats]
            return Outcome(None, tuple(records), lazily=lazily)

        def more(what: str) -> None:
            if what == "first":
                executor.execute(owned, say("second"), None)

        shard.on_replay = more
        executor.execute(owned, say("owed", lazily=True), None)
        executor.execute(owned, say("first", "third"), None)
        timers.close()
        keys = [record.key for batch in batches(partition.log) for record in batch]
        assert keys == [b"owed", b"first", b"third", b"second"]
        assert ("second", 3) in shard.replayed
