"""InitProducerId."""

from __future__ import annotations

import pytest

from ottla.api.init_producer_id import API
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.api.transaction_requests import transacting
from tests.fakes.control_plane import control_plane

ASKED = {"transactional_id": None, "transaction_timeout": 60_000}


@pytest.mark.spec("TXN-05")
@pytest.mark.parametrize("version", API.versions)
async def test_each_idempotent_producer_gets_an_id_of_its_own_in_epoch_zero(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = [await ask(one, API, ASKED, version) for _ in range(3)]
        assert [r.producer_id for r in said] == [0, 1, 2]
        assert {(r.error_code, r.producer_epoch) for r in said} == {(ErrorCode.none, 0)}


@pytest.mark.spec("TXN-16", "TXN-17", "TXN-29")
@pytest.mark.parametrize("version", API.versions)
async def test_a_transactional_producer_keeps_its_id_and_gets_larger_epochs(version: int) -> None:
    async with transacting() as broker:
        said = [await broker.init(version) for _ in range(3)]
        assert [(r.producer_id, r.producer_epoch) for r in said] == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.spec("TXN-29")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"id": ""}, ErrorCode.invalid_request),
        ({"producer_id": 5}, ErrorCode.invalid_request),
        ({"producer_epoch": 5}, ErrorCode.invalid_request),
        ({"transaction_timeout": 0}, ErrorCode.invalid_transaction_timeout),
        ({"transaction_timeout": 900_001}, ErrorCode.invalid_transaction_timeout),
    ],
)
async def test_what_no_producer_can_be_is_refused(
    fields: dict[str, object], code: ErrorCode
) -> None:
    async with transacting() as broker:
        said = await broker.init(**fields)  # type: ignore[arg-type]
        assert (said.error_code, said.producer_id, said.producer_epoch) == (code, -1, -1)


@pytest.mark.spec("TXN-17")
@pytest.mark.parametrize("version", range(3, 7))
async def test_who_names_an_old_epoch_is_fenced_in_words_it_knows(version: int) -> None:
    async with transacting() as broker:
        old = await broker.init()
        for _ in range(2):
            await broker.init()
        said = await broker.init(
            version, producer_id=old.producer_id, producer_epoch=old.producer_epoch
        )
        fenced = ErrorCode.producer_fenced
        assert said.error_code is (fenced if version >= 4 else ErrorCode.invalid_producer_epoch)


async def test_a_prepared_transaction_is_kept_and_its_identity_told() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        await broker.add(me)
        said = await broker.init(enable2_pc=True, keep_prepared_txn=True)
        assert said.error_code is ErrorCode.none
        assert (said.producer_id, said.producer_epoch) == (me.id, me.epoch + 1)
        ongoing = (said.ongoing_txn_producer_id, said.ongoing_txn_producer_epoch)
        assert ongoing == me
        again = await broker.init()
        assert again.error_code is ErrorCode.concurrent_transactions
