"""EndTxn."""

from __future__ import annotations

import pytest

from ottla.api.end_txn import API
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import ProducerId
from tests.api.transaction_requests import transacting

E = ErrorCode


@pytest.mark.spec("TXN-37", "TXN-40")
@pytest.mark.parametrize("version", API.versions)
@pytest.mark.parametrize("commit", [True, False])
async def test_a_transaction_is_ended_once_and_a_repeat_hears_the_same(
    version: int, commit: bool
) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        await broker.add(me)
        assert await broker.write(me) is E.none
        for _ in range(2):
            said = await broker.end(me, commit, version=version)
            assert said.error_code is E.none
            if version >= 5:
                assert (said.producer_id, said.producer_epoch) == me.next_epoch()
        other = await broker.end(me, not commit, version=version)
        assert other.error_code is E.invalid_txn_state


@pytest.mark.spec("TXN-17", "TXN-40")
@pytest.mark.parametrize("version", API.versions)
async def test_who_may_not_end_it_is_told_why(version: int) -> None:
    async with transacting() as broker:
        me = await broker.begun()

        async def code(who: Producer, id: str = "tx") -> ErrorCode:
            said = await broker.end(who, version=version, id=id)
            assert version < 5 or said.producer_id == -1
            answer: ErrorCode = said.error_code
            return answer

        assert await code(me, "") is E.invalid_request
        assert await code(me) is E.invalid_txn_state  # nothing is open
        await broker.add(me)
        wrong = Producer(ProducerId(me.id + 1), me.epoch)
        assert await code(wrong) is E.invalid_producer_id_mapping
        fenced = E.invalid_producer_epoch if version < 2 else E.producer_fenced
        assert await code(Producer(me.id, -1)) is fenced
