"""A coordinator moves from one broker to another: nothing committed is lost."""

from __future__ import annotations

import asyncio

import pytest

from ottla.coordinator.group.classic.join import JoinRequest
from ottla.coordinator.group.classic.member import Protocol
from ottla.coordinator.group.offset_commit import CommitRequest, OffsetToCommit
from ottla.coordinator.txn.completion import LAST_RETRY_MS
from ottla.coordinator.txn.end_transaction import EndRequest
from ottla.coordinator.txn.marker_routing import WRITE_TXN_MARKERS
from ottla.coordinator.txn.state import TxnState
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from ottla.protocol.records.batch import walk
from tests.coordinator.two_brokers import ID, A, B, OneBroker, TwoBrokers, two_brokers

E = ErrorCode
STATE = TopicPartition(TRANSACTION_STATE, 0)
OFFSETS = TopicPartition(CONSUMER_OFFSETS, 0)
TP = TopicPartition("t", 0)


async def commit(broker: OneBroker, offset: int) -> ErrorCode:
    request = CommitRequest("g", "", None, -1, [OffsetToCommit("t", 0, offset, -1, "")])
    try:
        [code] = await broker.groups.commit(request)
    except KafkaError as refusal:
        return refusal.code
    return code


async def committed(broker: OneBroker) -> int | ErrorCode:
    try:
        fetched = await broker.groups.fetch("g", {"t": [0]}, stable=True)
    except KafkaError as refusal:
        return refusal.code
    offset = fetched["t"][0]
    assert offset is not None and not isinstance(offset, ErrorCode)
    return offset.offset


@pytest.mark.spec("GRP-75", "GRP-78")
async def test_committed_offsets_move_with_the_coordinator_and_never_go_back() -> None:
    async with two_brokers() as cluster:
        await cluster.lead(A, OFFSETS)
        leader, other = cluster.a, cluster.b
        for offset in range(1, 7):
            assert await commit(leader, offset) is E.none
            assert await commit(other, 100) is E.not_coordinator
            await cluster.lead(other.id, OFFSETS)
            assert await commit(leader, 200) is E.not_coordinator
            assert await committed(leader) is E.not_coordinator
            assert await committed(other) == offset
            leader, other = other, leader


@pytest.mark.spec("GRP-78")
async def test_a_member_that_waits_is_sent_to_the_new_coordinator() -> None:
    settings = {"group.initial.rebalance.delay.ms": "60000"}
    async with two_brokers(settings) as cluster:
        await cluster.lead(A, OFFSETS)
        request = JoinRequest(
            member_id="", instance_id=None, client_id="c", client_host="h",
            session_timeout_ms=30_000, rebalance_timeout_ms=300_000,
            protocol_type="consumer", protocols=(Protocol("range", b""),), needs_known_id=False,
        )  # fmt: skip
        joining = asyncio.ensure_future(cluster.a.groups.join("g", request))
        await cluster.a.side.settle()
        assert not joining.done()
        await cluster.lead(B, OFFSETS)
        assert (await joining).error is E.not_coordinator


async def decided(cluster: TwoBrokers) -> None:
    """A has decided to commit; B leads the partition and cannot be reached yet."""
    await cluster.lead(A, STATE)
    await cluster.lead(B, TP)
    producer = await cluster.a.init()
    await cluster.a.add(producer, TP)
    assert await cluster.b.produce(producer, TP) is E.none
    cluster.unreachable.add(B)
    assert await cluster.a.end(producer) is E.none


def markers(broker: OneBroker) -> int:
    log = broker.log(TP)
    read = log.read(0, 1 << 20, end=log.end_offset, min_one=True)
    assert read.slice is not None
    return sum(header.is_control for _, header in walk(memoryview(read.slice.read())))


@pytest.mark.spec("TXN-22", "TXN-37", "TXN-39")
async def test_a_transaction_decided_before_a_move_is_completed_once_by_the_new_coordinator() -> (
    None
):
    async with two_brokers() as cluster:
        await decided(cluster)
        await cluster.lead(B, STATE)
        await cluster.b.side.until(5 * LAST_RETRY_MS)
        cluster.unreachable.clear()
        await cluster.b.side.until(10 * LAST_RETRY_MS)
        assert (await cluster.b.txns.describe(ID)).state is TxnState.COMPLETE_COMMIT
        assert markers(cluster.b) == 1
        assert cluster.b.log(TP).last_stable_offset == 2
        state = cluster.b.log(TP).producers.get(0)
        assert state is not None
        assert state.coordinator_epoch == 1, "of the new coordinator"


@pytest.mark.spec("TXN-44")
async def test_the_old_coordinator_cannot_complete_a_transaction_that_was_taken_over() -> None:
    """Its request was on its way while the coordinator moved; a newer epoch has written since."""
    async with two_brokers() as cluster:
        await decided(cluster)
        await cluster.a.side.until(LAST_RETRY_MS)
        late = cluster.requests_of(WRITE_TXN_MARKERS)[-1]
        await cluster.lead(B, STATE)
        await cluster.b.side.until(3 * LAST_RETRY_MS)
        cluster.unreachable.clear()
        reply = await cluster.a.to(B, "txn-markers").ask(WRITE_TXN_MARKERS, late, 1_000)
        [topic] = reply.body.markers[0].topics
        assert topic.partitions[0].error_code is E.transaction_coordinator_fenced
        ending = cluster.a.txns.end(ID, EndRequest((await cluster.b.init()), True))
        with pytest.raises(KafkaError, match="not_coordinator"):
            await ending


@pytest.mark.spec("TXN-22")
async def test_an_open_transaction_goes_on_at_the_new_coordinator() -> None:
    async with two_brokers() as cluster:
        await cluster.lead(A, STATE)
        await cluster.lead(B, TP)
        producer = await cluster.a.init()
        await cluster.a.add(producer, TP)
        assert await cluster.b.produce(producer, TP) is E.none
        await cluster.lead(B, STATE)
        assert await cluster.a.end(producer) is E.not_coordinator
        assert await cluster.b.end(producer) is E.none
        await cluster.b.side.settle()
        assert (await cluster.b.txns.describe(ID)).state is TxnState.COMPLETE_COMMIT


@pytest.mark.spec("TXN-29")
async def test_producer_ids_of_two_brokers_never_meet() -> None:
    async with two_brokers() as cluster:
        ids = [
            (await broker.init(None)).id
            for _ in range(1_100)
            for broker in cluster.brokers.values()
        ]
        assert len(set(ids)) == len(ids)
