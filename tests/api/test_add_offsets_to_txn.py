"""AddOffsetsToTxn."""

from __future__ import annotations

import pytest

from ottla.api.add_offsets_to_txn import API
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, TopicPartition
from tests.api.transaction_requests import ID, transacting


@pytest.mark.spec("TXN-35")
@pytest.mark.parametrize("version", API.versions)
async def test_the_partition_of_a_groups_offsets_joins_the_transaction(version: int) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        assert await broker.add_offsets(me, version=version) is ErrorCode.none
        txn = await broker.services.txns.describe(ID)
        assert txn.partitions == {TopicPartition(CONSUMER_OFFSETS, 0)}


@pytest.mark.parametrize("version", API.versions)
async def test_a_zombie_and_a_nameless_group_are_refused(version: int) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        assert await broker.add_offsets(me, "", version) is ErrorCode.invalid_group_id
        code = await broker.add_offsets(Producer(me.id, me.epoch + 1), version=version)
        old = version < 2
        assert code is (ErrorCode.invalid_producer_epoch if old else ErrorCode.producer_fenced)
