"""TxnOffsetCommit."""

from __future__ import annotations

import pytest

from ottla.api.txn_offset_commit import API
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from tests.api.transaction_requests import ID, Asker, transacting
from tests.fakes.data_side import TP

E = ErrorCode
GROUP = "g"


async def commit(
    broker: Asker, who: Producer, version: int, *, topic: str = TP.topic, **fields: object
) -> ErrorCode:
    partition = {"partition_index": 0, "committed_offset": 42, "committed_metadata": "m"}
    said = await broker.ask(
        API,
        version,
        transactional_id=ID,
        group_id=GROUP,
        producer_id=who.id,
        producer_epoch=who.epoch,
        topics=[{"name": topic, "partitions": [partition]}],
        **fields,
    )
    code: ErrorCode = said.topics[0].partitions[0].error_code
    return code


async def committed(broker: Asker) -> int | None:
    found = await broker.services.groups.fetch(GROUP, {TP.topic: [0]}, stable=False)
    one = found[TP.topic][0]
    return None if one is None else one.offset  # type: ignore[union-attr]


@pytest.mark.spec("TXN-36", "GRP-66")
@pytest.mark.parametrize("version", API.versions)
@pytest.mark.parametrize("commits", [True, False])
async def test_offsets_count_when_the_transaction_is_committed_and_not_before(
    version: int, commits: bool
) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        if version < 5:
            assert await broker.add_offsets(me) is E.none
        assert await commit(broker, me, version) is E.none
        assert await committed(broker) is None
        await broker.end(me, commits, version=5 if version >= 5 else 4)
        assert await committed(broker) == (42 if commits else None)


@pytest.mark.parametrize("version", range(0, 5))
async def test_older_clients_must_add_the_offsets_first(version: int) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        abortable = E.transaction_abortable if version >= 4 else E.invalid_txn_state
        assert await commit(broker, me, version) is abortable


@pytest.mark.spec("TXN-17")
@pytest.mark.parametrize("version", API.versions)
async def test_a_zombie_an_unknown_topic_and_an_old_generation_are_refused(version: int) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        await broker.add_offsets(me)
        zombie = Producer(me.id, me.epoch + 1)
        assert await commit(broker, zombie, version) is E.invalid_producer_epoch
        unknown = await commit(broker, me, version, topic="nowhere")
        assert unknown is E.unknown_topic_or_partition
        if version >= 3:
            late = await commit(broker, me, version, generation_id=7, member_id="somebody")
            assert late is E.illegal_generation


@pytest.mark.parametrize("version", API.versions)
async def test_an_unavailable_transaction_coordinator_does_not_send_a_client_to_another_group_one(
    version: int,
) -> None:
    async with transacting() as broker:
        me = await broker.begun()
        await broker.add_offsets(me)
        await broker.side.follow(TopicPartition(TRANSACTION_STATE, 0), epoch=1)
        waits = E.coordinator_load_in_progress if version > 1 else E.coordinator_not_available
        assert await commit(broker, me, version) is waits
        await broker.side.follow(TopicPartition(CONSUMER_OFFSETS, 0), epoch=1)
        if version > 1:
            lead = TopicPartition(TRANSACTION_STATE, 0)
            await broker.side.lead(lead, epoch=2)
            await broker.side.settle()
            assert await commit(broker, me, version) is E.not_coordinator, "the group's own"
