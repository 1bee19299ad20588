"""InitProducerId."""

from __future__ import annotations

import pytest

from ottla.api.init_producer_id import API
from ottla.model.errors import ErrorCode
from tests.api.asking import ask
from tests.fakes.control_plane import control_plane
from tests.fakes.virtual_loop import run

ASKED = {"transactional_id": None, "transaction_timeout": 60_000}


@pytest.mark.spec("TXN-05")
@pytest.mark.parametrize("version", API.versions)
def test_each_idempotent_producer_gets_an_id_of_its_own_in_epoch_zero(version: int) -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            said = [await ask(one, API, ASKED, version) for _ in range(3)]
            assert [r.producer_id for r in said] == [0, 1, 2]
            assert {(r.error_code, r.producer_epoch) for r in said} == {(ErrorCode.none, 0)}

    run(story())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": "tx"}, ErrorCode.coordinator_not_available),
        ({"transactional_id": ""}, ErrorCode.invalid_request),
        ({"producer_id": 5}, ErrorCode.invalid_request),
        ({"producer_epoch": 5}, ErrorCode.invalid_request),
    ],
)
def test_what_is_not_an_idempotent_producer_is_refused(
    fields: dict[str, object], code: ErrorCode
) -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            said = await ask(one, API, {**ASKED, **fields})
            assert (said.error_code, said.producer_id, said.producer_epoch) == (code, -1, -1)

    run(story())
