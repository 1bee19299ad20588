"""AddPartitionsToTxn."""

from __future__ import annotations

import pytest

from ottla.api.add_partitions_to_txn import API
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, ProducerId, TopicPartition
from tests.api.transaction_requests import ID, transacting
from tests.fakes.data_side import TP

E = ErrorCode


@pytest.mark.spec("TXN-32")
@pytest.mark.parametrize("version", range(0, 4))
async def test_a_client_adds_partitions_and_may_then_write_to_them(version: int) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        assert await broker.write(me) is E.invalid_txn_state
        assert await broker.add(me, version=version) == [E.none]
        assert await broker.add(me, version=version) == [E.none]
        assert await broker.write(me) is E.none


async def test_one_unknown_partition_keeps_the_others_out_too() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        codes = await broker.add(me, TP, TopicPartition("nowhere", 0))
        assert codes == [E.operation_not_attempted, E.unknown_topic_or_partition]
        assert await broker.write(me) is E.invalid_txn_state


async def test_a_client_cannot_add_an_internal_topic() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        codes = await broker.add(me, TP, TopicPartition(CONSUMER_OFFSETS, 0))
        assert codes == [E.operation_not_attempted, E.topic_authorization_failed]


@pytest.mark.spec("TXN-33")
@pytest.mark.parametrize("version", range(0, 4))
async def test_somebody_else_is_refused_in_words_it_knows(version: int) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        fenced = E.producer_fenced if version >= 2 else E.invalid_producer_epoch
        assert await broker.add(Producer(me.id, -1), version=version) == [fenced]
        other = Producer(ProducerId(99), me.epoch)
        assert await broker.add(other, version=version) == [E.invalid_producer_id_mapping]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("verify_only", [True, False])
async def test_brokers_ask_for_several_transactions_or_only_look(
    version: int, verify_only: bool
) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        asked = {
            "transactional_id": ID,
            "producer_id": me.id,
            "producer_epoch": me.epoch,
            "verify_only": verify_only,
            "topics": [{"name": TP.topic, "partitions": [TP.partition]}],
        }
        refused = await broker.ask(API, version, transactions=[asked])
        assert refused.error_code is E.cluster_authorization_failed
        broker.peer.is_broker = True
        said = await broker.ask(API, version, transactions=[asked])
        assert said.error_code is E.none
        [transaction] = said.results_by_transaction
        [result] = transaction.topic_results[0].results_by_partition
        unknown = E.transaction_abortable if version >= 5 else E.invalid_txn_state
        assert result.partition_error_code is (unknown if verify_only else E.none)
        assert await broker.write(me) is (E.invalid_txn_state if verify_only else E.none)
