"""ListTransactions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.list_transactions import API
from ottla.model.errors import ErrorCode
from tests.api.transaction_requests import ID, transacting


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["other", ID]),
        ({"state_filters": ["Ongoing"]}, [ID]),
        ({"state_filters": ["Empty", "Nonsense"]}, ["other"]),
        ({"producer_id_filters": [1]}, ["other"]),
        ({"duration_filter": 5_000}, [ID, "other"]),
        ({"duration_filter": 50_000, "state_filters": ["Ongoing"]}, []),
        ({"transactional_id_pattern": "o.*r"}, ["other"]),
        ({"transactional_id_pattern": "t"}, []),
    ],
)
async def test_transactional_ids_are_listed_as_the_filters_say(
    filters: dict[str, Any], ids: list[str]
) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        await broker.init(id="other")
        await broker.add(me)
        await broker.side.until(10_000)
        said = await broker.ask(API, **filters)
        assert {one.transactional_id for one in said.transaction_states} == set(ids)
        unknown = ("Nonsense",) if "Nonsense" in str(filters) else ()
        assert said.unknown_state_filters == unknown


async def test_a_pattern_that_is_none_is_refused() -> None:
    async with transacting() as broker:
        said = await broker.ask(API, transactional_id_pattern="(")
        assert said.error_code is ErrorCode.invalid_regular_expression
