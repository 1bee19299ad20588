"""What producers hear from the gate."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.state import Producer
from ottla.coordinator.txn.verification import producer_error
from ottla.model.errors import ErrorCode
from ottla.model.ids import ProducerId
from ottla.replica.transaction_verification import TransactionalBatch
from tests.coordinator.txn.rig import ID, OTHER_TP, V2, txn_side

E = ErrorCode
OLD = TransactionalBatch(ID)
KNOWS = TransactionalBatch(ID, knows_abortable=True)


@pytest.mark.parametrize(
    ("code", "terms", "heard"),
    [
        (E.none, OLD, E.none),
        (E.transaction_abortable, OLD, E.invalid_txn_state),
        (E.transaction_abortable, KNOWS, E.transaction_abortable),
        (E.concurrent_transactions, OLD, E.not_enough_replicas),
        (E.concurrent_transactions, V2, E.concurrent_transactions),
        (E.coordinator_load_in_progress, V2, E.not_enough_replicas),
        (E.coordinator_not_available, V2, E.not_enough_replicas),
        (E.not_coordinator, OLD, E.not_enough_replicas),
        (E.producer_fenced, OLD, E.invalid_producer_epoch),
        (E.invalid_producer_id_mapping, OLD, E.invalid_producer_id_mapping),
    ],
)
def test_a_refusal_is_said_in_words_a_producer_knows(
    code: ErrorCode, terms: TransactionalBatch, heard: ErrorCode
) -> None:
    assert producer_error(code, terms) is heard


@pytest.mark.spec("TXN-32", "TXN-34")
@pytest.mark.parametrize(
    ("terms", "code"), [(OLD, E.invalid_txn_state), (KNOWS, E.transaction_abortable)]
)
async def test_a_partition_that_was_not_added_takes_nothing(
    terms: TransactionalBatch, code: ErrorCode
) -> None:
    async with txn_side() as rig:
        me = await rig.init()
        assert await rig.write(me, b"x", txn=terms) is code
        await rig.add(me, OTHER_TP)
        assert await rig.write(me, b"x", txn=terms) is code
        assert rig.side.hosted.get(OTHER_TP).log.end_offset == 0


async def test_verification_can_be_switched_off() -> None:
    settings = {"transaction.partition.verification.enable": "false"}
    async with txn_side(settings) as rig:
        me = await rig.init()
        assert await rig.write(me, b"x") is E.none


async def test_with_the_newer_protocol_the_broker_adds_the_partition() -> None:
    async with txn_side() as rig:
        me = await rig.init()
        assert await rig.write(me, b"x", key=OTHER_TP, txn=V2) is E.none
        assert (await rig.txns.describe(ID)).partitions == {OTHER_TP}
        stranger = Producer(ProducerId(99), 0)
        assert await rig.write(stranger, b"x", txn=V2) is E.invalid_producer_id_mapping
