"""Whole transactions: coordinator, partitions and markers together."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ottla.coordinator.txn.end_transaction import EndRequest
from ottla.coordinator.txn.init_producer_id import InitProducerIdRequest
from ottla.coordinator.txn.markers import TransactionEnd
from ottla.coordinator.txn.shard import ID_BYTES
from ottla.coordinator.txn.state import LAST_EPOCH, NeedsProducerId, Producer, TxnState
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, NO_PRODUCER, ProducerId, TopicPartition
from ottla.replica.fetch.options import Isolation
from ottla.replica.transaction_verification import TransactionalBatch
from tests.coordinator.txn.rig import ID, OTHER_TP, V2, TxnSide, txn_side
from tests.fakes.data_side import TP, values_of

S = TxnState
COMMITTED = {"isolation": Isolation.READ_COMMITTED}


async def state(rig: TxnSide) -> TxnState:
    return (await rig.txns.describe(ID)).state


@pytest.mark.spec("TXN-18", "TXN-32", "TXN-34", "TXN-37", "TXN-38", "TXN-39", "TXN-46")
async def test_a_committed_transaction_is_seen_by_everybody_once_it_has_ended() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        await rig.add(me, TP, OTHER_TP)
        assert await rig.write(me, b"a") is ErrorCode.none
        assert await rig.write(me, b"b", key=OTHER_TP) is ErrorCode.none
        before = await rig.side.read(**COMMITTED)
        assert values_of(before) == []
        assert (before.last_stable_offset, before.high_watermark) == (0, 1)
        assert values_of(await rig.side.read()) == [b"a"]
        assert await rig.end(me, True) == me
        after = await rig.side.read(**COMMITTED)
        assert values_of(after)[:1] == [b"a"]
        assert (after.aborted, after.last_stable_offset) == ([], 2)
        assert await state(rig) is S.COMPLETE_COMMIT


@pytest.mark.spec("TXN-45", "TXN-47", "OPEN-07")
async def test_an_aborted_transaction_is_named_to_readers_of_committed_data() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        await rig.side.append(b"plain")
        await rig.add(me)
        await rig.write(me, b"a")
        await rig.end(me, False)
        after = await rig.side.read(**COMMITTED)
        assert after.aborted == [(me.id, 1)]
        assert after.last_stable_offset == 3
        assert await state(rig) is S.COMPLETE_ABORT


@pytest.mark.spec("TXN-17", "TXN-29", "TXN-44")
@pytest.mark.parametrize("version", [0, 2])
async def test_a_zombie_can_neither_write_nor_add_nor_end(version: int) -> None:
    async with txn_side() as rig:
        old = await rig.init()
        await rig.add(old, version=version)
        await rig.write(old, b"a")
        first = rig.txns.initialise(ID, InitProducerIdRequest(60_000))
        assert await rig.refusal(first) is ErrorCode.concurrent_transactions
        await rig.side.settle()
        new = await rig.init()
        assert new.id == old.id
        assert new.epoch > old.epoch
        terms = TransactionalBatch(ID, adds=version == 2)
        late = await rig.write(old, b"late", sequence=1, txn=terms)
        assert late is ErrorCode.invalid_producer_epoch
        elsewhere = await rig.write(old, b"late", key=OTHER_TP, txn=terms)
        assert elsewhere is ErrorCode.invalid_producer_epoch
        assert await rig.refusal(rig.add(old)) is ErrorCode.producer_fenced
        for commit in (True, False):
            ending = rig.end(old, commit, version=version)
            assert await rig.refusal(ending) is ErrorCode.producer_fenced
        assert (await rig.side.read(**COMMITTED)).aborted == [(old.id, 0)]


async def test_an_end_that_uses_up_the_epochs_waits_for_a_new_producer_id() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        shard = rig.parts.runtime.owned_shard(ID).shard
        held = shard.get(ID)
        assert held is not None
        last = Producer(me.id, LAST_EPOCH - 1)
        shard.replay(held._replace(epoch=last.epoch), 0, NO_PRODUCER)
        await rig.add(last, version=2)
        heard: list[object] = []
        with pytest.raises(NeedsProducerId):
            rig.txns.start_ending(ID, EndRequest(last, True, 2), heard.append)
        assert await rig.end(last, True, version=2) == (me.id + 1, 0)
        assert await state(rig) is S.COMPLETE_COMMIT
        assert heard == []


@pytest.mark.spec("TXN-42")
async def test_an_overdue_transaction_is_aborted_and_its_producer_fenced() -> None:
    async with txn_side() as rig:
        me = await rig.init(timeout_ms=5_000)
        await rig.add(me)
        await rig.write(me, b"a")
        await rig.side.until(4_000)
        assert await state(rig) is S.ONGOING
        await rig.side.until(5_000 + 10_000 + 1_000)
        assert await state(rig) is S.COMPLETE_ABORT
        assert (await rig.side.read(**COMMITTED)).last_stable_offset == 2
        assert await rig.refusal(rig.end(me, True)) is ErrorCode.producer_fenced


async def test_a_two_phase_transaction_is_never_overdue_and_survives_its_client() -> None:
    async with txn_side() as rig:
        me = await rig.init(two_phase=True)
        await rig.write(me, b"a", txn=V2)
        await rig.side.until(3_000_000)
        assert await state(rig) is S.ONGOING
        asked = InitProducerIdRequest(60_000, two_phase=True, keep_prepared=True)
        given = await rig.txns.initialise(ID, asked)
        assert (given.producer, given.ongoing) == (me.next_epoch(), me)
        assert await rig.refusal(rig.end(me, True, version=2)) is ErrorCode.producer_fenced
        following = await rig.end(given.producer, True, version=2)
        assert following == (me.id, me.epoch + 2)
        after = await rig.side.read(**COMMITTED)
        assert values_of(after)[:1] == [b"a"]
        assert await rig.write(following, b"b", txn=V2) is ErrorCode.none


async def test_two_phase_commit_can_be_switched_off() -> None:
    settings = {"transaction.two.phase.commit.enable": "false"}
    async with txn_side(settings) as rig:
        code = await rig.refusal(rig.init(two_phase=True))
        assert code is ErrorCode.transactional_id_authorization_failed
        assert await rig.refusal(rig.init()) is ErrorCode.none


@pytest.mark.spec("TXN-43")
async def test_an_unused_id_is_forgotten_but_not_one_in_use() -> None:
    settings = {
        "transactional.id.expiration.ms": "100000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    }
    async with txn_side(settings) as rig:
        me = await rig.init(two_phase=True)
        await rig.add(me)
        await rig.init("idle")
        await rig.side.until(150_000)
        assert [txn.id for txn in rig.txns.list()] == [ID]
        gone = rig.txns.describe("idle")
        assert await rig.refusal(gone) is ErrorCode.transactional_id_not_found


@pytest.mark.spec("TXN-29")
@pytest.mark.parametrize(
    ("id", "timeout_ms", "code"),
    [
        ("", 60_000, ErrorCode.invalid_request),
        ("é" * 2**14, 60_000, ErrorCode.invalid_request),
        (ID, 0, ErrorCode.invalid_transaction_timeout),
        (ID, -1, ErrorCode.invalid_transaction_timeout),
        (ID, 900_001, ErrorCode.invalid_transaction_timeout),
        (ID, 900_000, ErrorCode.none),
    ],
)
async def test_what_cannot_begin_is_refused(id: str, timeout_ms: int, code: ErrorCode) -> None:
    async with txn_side() as rig:
        assert await rig.refusal(rig.init(id, timeout_ms=timeout_ms)) is code


async def test_every_end_of_the_newer_protocol_gives_the_next_epoch() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        for number in range(3):
            assert await rig.write(me, b"x", txn=V2) is ErrorCode.none
            following = await rig.end(me, number != 1, version=2)
            assert following == me.next_epoch()
            late = await rig.write(me, b"late", sequence=1, txn=V2)
            assert late is ErrorCode.invalid_producer_epoch
            me = following
        assert (await rig.side.read(**COMMITTED)).aborted == [(me.id, 2)]


async def test_a_marker_delayed_beyond_its_transaction_does_not_end_the_next() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        await rig.write(me, b"a", txn=V2)
        following = await rig.end(me, True, version=2)
        await rig.write(following, b"b", txn=V2)
        marking = TransactionEnd(following, True, 0, 2)
        codes = await rig.txns.markers.write(marking, [TP])
        assert codes == {TP: ErrorCode.invalid_producer_epoch}
        assert (await rig.side.read(**COMMITTED)).last_stable_offset == 2


@pytest.mark.spec("TXN-35", "TXN-36")
async def test_the_offsets_of_a_group_hear_how_it_ended() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        await rig.add(me, TopicPartition(CONSUMER_OFFSETS, 27))
        await rig.end(me, True)
        [(index, producer, marker)] = rig.offsets.ended
        assert (index, producer, marker.type.name) == (27, me, "COMMIT")


@pytest.mark.spec("TXN-38", "TXN-41")
async def test_the_end_is_answered_soon_though_a_marker_cannot_be_written_yet() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        await rig.add(me)
        await rig.write(me, b"a")
        await rig.side.follow(TP, epoch=1)
        started = rig.side.clock.mono_ms()
        assert await rig.end(me, True) == me
        assert rig.side.clock.mono_ms() - started <= 100
        assert await state(rig) is S.PREPARE_COMMIT
        busy = [rig.add(me), rig.init(), rig.end(me, True)]
        for asking in busy:
            assert await rig.refusal(asking) is ErrorCode.concurrent_transactions
        await rig.side.lead(TP, epoch=2)
        await rig.side.until(1_000)
        assert await state(rig) is S.COMPLETE_COMMIT


async def test_a_deleted_partition_does_not_keep_a_transaction_from_ending() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        await rig.add(me, TopicPartition("gone", 3), TP)
        await rig.end(me, True)
        assert await state(rig) is S.COMPLETE_COMMIT


@pytest.mark.spec("TXN-22")
async def test_another_coordinator_finishes_what_was_decided() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        await rig.add(me)
        await rig.write(me, b"a")
        await rig.side.follow(TP, epoch=1)
        await rig.end(me, True)
        rig.parts.runtime.on_unlead(rig.parts.runtime.owned_shard(ID).partition.key)
        refused = rig.txns.describe(ID)
        assert await rig.refusal(refused) is ErrorCode.not_coordinator
        await rig.side.lead(TP, epoch=2)
        await rig.side.until(1_000)
        await rig.coordinate(epoch=1)
        await rig.side.until(2_000)
        assert await state(rig) is S.COMPLETE_COMMIT
        assert values_of(await rig.side.read(**COMMITTED))[:1] == [b"a"]


async def test_an_answer_never_rests_on_what_is_not_committed() -> None:
    """A second AddPartitions that finds nothing to do waits for the first one's record."""
    async with txn_side({"flush.before.ack": "all"}) as rig:
        me = await rig.init()
        rig.side.pool.held = True
        first = asyncio.ensure_future(rig.add(me))
        await rig.side.settle()
        second = asyncio.ensure_future(rig.add(me))
        await rig.side.settle()
        assert not first.done()
        assert not second.done()
        rig.side.pool.held = False
        rig.side.pool.run_all()
        await asyncio.gather(first, second)


async def test_only_ids_of_this_coordinator_are_listed() -> None:
    async with txn_side() as rig:
        for id in ("b", "a"):
            await rig.init(id)
        assert sorted(txn.id for txn in rig.txns.list()) == ["a", "b"]
        assert await rig.refusal(rig.txns.describe("")) is ErrorCode.invalid_request


async def test_nobody_else_may_end_it() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        assert await rig.refusal(rig.end(me, True)) is ErrorCode.invalid_txn_state
        await rig.add(me)
        other = Producer(ProducerId(99), me.epoch)
        code = await rig.refusal(rig.end(other, True))
        assert code is ErrorCode.invalid_producer_id_mapping
        unknown = rig.end(me, True, id="nobody")
        assert await rig.refusal(unknown) is ErrorCode.invalid_producer_id_mapping


async def test_new_ids_are_refused_when_those_there_are_fill_their_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with txn_side() as rig:
        limits = replace(rig.txns._limits(), memory_bytes=3 * (ID_BYTES + 4))
        rig.txns._limits = lambda: limits
        for number in range(3):
            await rig.txns.initialise(f"id-{number}", InitProducerIdRequest(60_000))
        for number in range(3, 6):
            new = rig.txns.initialise(f"id-{number}", InitProducerIdRequest(60_000))
            assert await rig.refusal(new) is ErrorCode.policy_violation
        assert await rig.txns.initialise("id-0", InitProducerIdRequest(60_000)), "known ones go on"
    assert caplog.text.count("refusing new ids until some expire") == 1
