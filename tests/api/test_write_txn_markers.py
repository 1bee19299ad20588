"""WriteTxnMarkers."""

from __future__ import annotations

import pytest

from ottla.api.write_txn_markers import API
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode
from tests.api.transaction_requests import Asker, transacting
from tests.fakes.data_side import TP

E = ErrorCode


async def marked(broker: Asker, who: Producer, version: int, **fields: object) -> list[ErrorCode]:
    marker = {
        "producer_id": who.id,
        "producer_epoch": who.epoch,
        "transaction_result": False,
        "topics": [{"name": TP.topic, "partition_indexes": [0, 7]}],
        "coordinator_epoch": 3,
        **fields,
    }
    said = await broker.ask(API, version, markers=[marker])
    return [one.error_code for one in said.markers[0].topics[0].partitions]


@pytest.mark.spec("TXN-38", "TXN-45")
@pytest.mark.parametrize("version", API.versions)
async def test_an_open_transaction_is_ended_where_it_is_and_unknown_partitions_are_named(
    version: int,
) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        await broker.add(me)
        await broker.write(me)
        log = broker.side.hosted.get(TP).log
        assert log.last_stable_offset == 0
        assert await marked(broker, me, version) == [E.none, E.unknown_topic_or_partition]
        assert log.last_stable_offset == 2


@pytest.mark.spec("TXN-44")
@pytest.mark.parametrize("version", API.versions)
async def test_older_coordinators_and_older_producers_are_fenced(version: int) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        newer = me.next_epoch()
        assert (await marked(broker, newer, version))[0] is E.none
        assert (await marked(broker, me, version))[0] is E.invalid_producer_epoch
        fenced = await marked(broker, newer, version, coordinator_epoch=2)
        assert fenced[0] is E.transaction_coordinator_fenced
