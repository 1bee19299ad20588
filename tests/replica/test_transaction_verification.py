"""Transactional batches on their way to a partition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.log.producers.producer_states import ProducerState
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.hot import ProducedPartition
from ottla.protocol.records.batch import BatchHeader, read_header
from ottla.replica.append import AppendOptions, PartitionAppend
from ottla.replica.transaction_verification import TransactionalBatch, needs_verification
from tests.fakes.data_side import TP, DataSide, data_side, values_of

E = ErrorCode
OLD, NEW = TransactionalBatch("tx"), TransactionalBatch("tx", adds=True)


class FakeVerifier:
    """Answers when the test says so, unless it has an answer already."""

    def __init__(self, at_once: ErrorCode | None = None) -> None:
        self.at_once = at_once
        self.asked: list[tuple[TransactionalBatch, TopicPartition, int, int]] = []
        self.waiting: list[Callable[[ErrorCode], None]] = []

    def admit(
        self,
        txn: TransactionalBatch,
        key: TopicPartition,
        producer_id: int,
        epoch: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        self.asked.append((txn, key, producer_id, epoch))
        if self.at_once is None:
            self.waiting.append(done)
        else:
            done(self.at_once)


def produce(
    side: DataSide,
    value: bytes,
    sequence: int = 0,
    *,
    producer: int = 7,
    epoch: int = 0,
    txn: TransactionalBatch | None = OLD,
    transactional: bool = True,
) -> asyncio.Future[ProducedPartition]:
    done: asyncio.Future[ProducedPartition] = asyncio.get_running_loop().create_future()
    batch = bytearray(
        side.batch(
            value, producer_id=producer, producer_epoch=epoch, base_sequence=sequence,
            transactional=transactional,
        )
    )  # fmt: skip
    side.services.appends.append(
        [PartitionAppend(TP, memoryview(batch))],
        AppendOptions(1, 1_000, txn=txn),
        lambda outcomes: done.set_result(outcomes[0]),
    )
    batch[:] = bytes(len(batch))  # the receive buffer is used again
    return done


def header(side: DataSide, **fields: Any) -> BatchHeader:
    return read_header(memoryview(side.batch(b"x", producer_id=7, transactional=True, **fields)))


def state(epoch: int, first_offset: int | None) -> ProducerState:
    known = ProducerState(7, epoch)
    known.txn_first_offset = first_offset
    return known


async def test_only_the_first_batch_of_a_transaction_in_a_partition_is_asked_about() -> None:
    async with data_side() as side:
        first = header(side, producer_epoch=3, base_sequence=0)
        assert needs_verification(None, first, OLD)
        assert needs_verification(state(3, None), first, OLD)
        assert needs_verification(state(2, 5), first, OLD)
        assert not needs_verification(state(3, 5), first, OLD)
        assert not needs_verification(state(4, None), first, OLD)  # the log refuses it
        for known in (None, state(4, None), state(3, 5)):  # whatever the log would say
            with pytest.raises(KafkaError) as nameless:
                needs_verification(known, first, None)
            assert nameless.value.code is E.transactional_id_authorization_failed
        later = header(side, producer_epoch=3, base_sequence=1)
        assert needs_verification(None, later, OLD)
        with pytest.raises(KafkaError) as gap:
            needs_verification(None, later, NEW)
        assert gap.value.code is E.out_of_order_sequence_number


async def test_a_batch_waits_for_the_gate_and_the_producers_next_ones_behind_it() -> None:
    async with data_side() as side:
        verifier = side.services.appends.verifier = FakeVerifier()
        await side.lead()
        first = produce(side, b"a")
        second = produce(side, b"b", 1)
        other = produce(side, b"other", producer=8, transactional=False)
        await side.settle()
        assert other.done()
        assert not first.done()
        assert verifier.asked == [(OLD, TP, 7, 0)]
        verifier.waiting.pop()(E.none)
        assert (first.result().error_code, second.result().error_code) == (E.none, E.none)
        assert len(verifier.asked) == 1
        assert values_of(await side.read()) == [b"other", b"a", b"b"]


async def test_what_was_admitted_is_refused_where_the_partition_has_gone_meanwhile() -> None:
    async with data_side() as side:
        verifier = side.services.appends.verifier = FakeVerifier()
        await side.lead()
        first = produce(side, b"a")
        await side.follow(epoch=1)
        verifier.waiting.pop()(E.none)
        assert (await first).error_code is E.not_leader_or_follower


async def test_whoever_is_not_admitted_leaves_nothing_and_those_behind_are_asked_about_again() -> (
    None
):
    async with data_side() as side:
        verifier = side.services.appends.verifier = FakeVerifier()
        await side.lead()
        first, second = produce(side, b"a", txn=NEW), produce(side, b"b", 1, txn=NEW)
        verifier.waiting.pop()(E.concurrent_transactions)
        assert first.result().error_code is E.concurrent_transactions
        assert second.result().error_code is E.out_of_order_sequence_number
        again = produce(side, b"a", txn=NEW)
        verifier.waiting.pop()(E.none)
        assert again.result().error_code is E.none
        assert values_of(await side.read()) == [b"a"]


async def test_a_gate_that_answers_at_once_costs_no_copy_and_no_wait() -> None:
    async with data_side() as side:
        side.services.appends.verifier = FakeVerifier(E.none)
        await side.lead()
        assert produce(side, b"a").result().error_code is E.none
        side.services.appends.verifier = FakeVerifier(E.invalid_txn_state)
        assert produce(side, b"b", 1).result().error_code is E.none
        refused = produce(side, b"c", producer=9)
        assert refused.result().error_code is E.invalid_txn_state


async def test_a_batch_that_must_be_rewritten_waits_for_the_gate_first() -> None:
    async with data_side({"compression.type": "gzip"}) as side:
        verifier = side.services.appends.verifier = FakeVerifier()
        await side.lead()
        first, second = produce(side, b"a"), produce(side, b"b", 1)
        side.pool.held = True
        verifier.waiting.pop()(E.none)
        other = produce(side, b"other", producer=8, transactional=False)
        await side.settle()
        assert not first.done()
        side.pool.held = False
        side.pool.run_all()
        codes = [(await one).error_code for one in (first, second, other)]
        assert codes == [E.none] * 3
        assert values_of(await side.read()) == [b"a", b"b", b"other"]
