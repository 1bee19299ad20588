"""DescribeTransactions."""

from __future__ import annotations

from ottla.api.describe_transactions import API
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from tests.api.transaction_requests import ID, transacting
from tests.fakes.data_side import TP


async def test_a_transaction_is_described_and_an_unknown_id_is_said_to_be_unknown() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        await broker.add(me)
        said = await broker.ask(API, transactional_ids=[ID, "nobody", ""])
        one, unknown, nameless = said.transaction_states
        assert (one.transaction_state, one.producer_id, one.producer_epoch) == ("Ongoing", *me)
        assert wire.ms(one.transaction_timeout) == 60_000
        assert wire.ms(one.transaction_start_time) == broker.side.clock.wall_ms()
        [topic] = one.topics
        assert (topic.topic, topic.partitions) == (TP.topic, (0,))
        assert unknown.error_code is ErrorCode.transactional_id_not_found
        assert nameless.error_code is ErrorCode.invalid_request
