"""What a user does with transactions, against a broker of ours."""

from __future__ import annotations

from typing import Any

import pytest

import ottla
from ottla.client.errors import ErrorCode, KafkaError, UserError
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.testing import Broker
from tests.client.producer.broker_rig import producing
from tests.client.producer.transactions.transaction_brokers import newer, older
from tests.fakes.scripted_broker import INIT_PRODUCER_ID, PRODUCE
from tests.interop.producer_rig import read

TWO_PHASE: dict[str, Any] = {"transactional_id": "two", "transaction_two_phase_commit_enable": True}


@pytest.mark.spec("TXN-48", "TXN-49")
@pytest.mark.real_loop
async def test_steps_out_of_order_are_refused_in_words() -> None:
    async with older() as broker:
        async with producing(broker) as plain:
            for ask in (plain.init_transactions, plain.commit, plain.abort):
                with pytest.raises(UserError, match="has no transactional_id"):
                    await ask()
        async with producing(broker, transactional_id="x") as producer:
            with pytest.raises(UserError, match=r"call init_transactions\(\) first"):
                producer.begin()
            with pytest.raises(UserError, match=r"call init_transactions\(\) first"):
                await producer.send("t", b"")
            await producer.init_transactions()
            with pytest.raises(UserError, match="already called"):
                await producer.init_transactions()
            with pytest.raises(UserError, match=r"call begin\(\) first"):
                await producer.send("t", b"")
            with pytest.raises(UserError, match=r"call begin\(\) first"):
                await producer.commit()
            with pytest.raises(UserError, match=r"call begin\(\) first"):
                await producer.send_offsets({ottla.TopicPartition("t", 0): 1}, "g")
            producer.begin()
            with pytest.raises(UserError, match="needs transaction_two_phase_commit_enable"):
                await producer.prepare_transaction()
            with pytest.raises(UserError, match="no transaction is prepared"):
                await producer.complete_transaction(PreparedTransaction("x", 1, 1))
            await producer.send_offsets({}, "g")
            await producer.abort()


@pytest.mark.spec("TXN-51", "TXN-52")
@pytest.mark.real_loop
async def test_a_record_that_failed_must_be_aborted_and_numbers_begin_anew() -> None:
    async with older() as broker, producing(broker, transactional_id="x") as producer:
        first = {"error_code": 0, "producer_id": 5, "producer_epoch": 0}
        broker.script(INIT_PRODUCER_ID, first, {**first, "producer_epoch": 1})
        await producer.init_transactions()
        producer.begin()
        broker.script(PRODUCE, broker.refuse(ErrorCode.invalid_record))
        delivery = await producer.send("t", b"", partition=0)
        with pytest.raises(ottla.AbortNeeded):
            await producer.commit()
        with pytest.raises(KafkaError):
            await delivery
        with pytest.raises(ottla.AbortNeeded):
            await producer.send("t", b"", partition=0)
        await producer.abort()
        async with producer.transaction():
            await producer.send("t", b"again", partition=0)
        assert broker.arrived[-1][1:4] == (5, 1, 0)


@pytest.mark.spec("TXN-51")
@pytest.mark.real_loop
async def test_an_abort_drops_what_was_not_sent_and_tells_those_who_wait() -> None:
    options: dict[str, Any] = {"transactional_id": "x", "linger_ms": 20_000}
    async with newer() as broker, producing(broker, **options) as producer:
        await producer.init_transactions()
        producer.begin()
        delivery = await producer.send("t", b"", partition=0)
        await producer.abort()
        with pytest.raises(ottla.AbortNeeded, match="aborted before the record was sent"):
            await delivery
        assert broker.arrived == []


def test_a_prepared_transaction_is_committed_by_another_producer() -> None:
    with Broker() as broker:
        options = {"bootstrap_servers": broker.bootstrap_servers, **TWO_PHASE}
        with ottla.Producer(**options) as first:
            assert first.init_transactions() is None
            first.begin()
            first.send("t", b"prepared")
            prepared = first.prepare_transaction()
            with pytest.raises(UserError, match="call complete_transaction"):
                first.send("t", b"too late")
        assert read(broker.bootstrap_servers, "t") == []
        with ottla.Producer(**options) as second:
            assert second.init_transactions(keep_prepared=True) == prepared
            assert second.complete_transaction(prepared)
            with second.transaction():
                second.send("t", b"and another")
        values = [each.value for each in read(broker.bootstrap_servers, "t")]
        assert values == [b"prepared", b"and another"]


def test_a_prepared_transaction_that_nobody_wrote_down_is_aborted() -> None:
    with Broker() as broker:
        options = {"bootstrap_servers": broker.bootstrap_servers, **TWO_PHASE}
        with ottla.Producer(**options) as first:
            first.init_transactions()
            first.begin()
            first.send("t", b"prepared")
            first.prepare_transaction()
        with ottla.Producer(**options) as second:
            kept_prepared = second.init_transactions(keep_prepared=True)
            assert kept_prepared is not None
            assert not second.complete_transaction(
                kept_prepared._replace(epoch=kept_prepared.epoch + 100)
            )
        assert read(broker.bootstrap_servers, "t") == []


def test_who_prepared_may_complete_or_abort_itself() -> None:
    with Broker() as broker:
        options = {"bootstrap_servers": broker.bootstrap_servers, **TWO_PHASE}
        with ottla.Producer(**options) as producer:
            producer.init_transactions()
            producer.begin()
            producer.send("t", b"kept")
            assert producer.complete_transaction(producer.prepare_transaction())
            producer.begin()
            producer.send("t", b"dropped")
            producer.prepare_transaction()
            producer.abort()
        assert [each.value for each in read(broker.bootstrap_servers, "t")] == [b"kept"]
