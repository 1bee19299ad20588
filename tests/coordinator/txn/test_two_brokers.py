"""Transactions whose coordinator and partitions are on different brokers."""

from __future__ import annotations

import pytest

from ottla.api.txn_offset_commit import API as TXN_OFFSET_COMMIT
from ottla.coordinator.txn.completion import LAST_RETRY_MS
from ottla.coordinator.txn.marker_routing import PARTITIONS_MAX, WRITE_TXN_MARKERS
from ottla.coordinator.txn.remote_coordinator import ADD_PARTITIONS_TO_TXN
from ottla.coordinator.txn.state import Producer, TxnState
from ottla.metadata.image import DELETED, PartitionMetadata
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    CONSUMER_OFFSETS,
    NO_BROKER,
    TRANSACTION_STATE,
    LeaderEpoch,
    TopicPartition,
)
from tests.coordinator.two_brokers import BOTH, ID, A, B, OneBroker, TwoBrokers, two_brokers

E = ErrorCode
STATE = TopicPartition(TRANSACTION_STATE, 0)
OFFSETS = TopicPartition(CONSUMER_OFFSETS, 0)
HERE, THERE = TopicPartition("here", 0), TopicPartition("there", 0)


async def started(cluster: TwoBrokers) -> Producer:
    """A coordinates; HERE is led by A and THERE by B; the transaction has written to both."""
    await cluster.lead(A, STATE, HERE)
    await cluster.lead(B, THERE)
    producer = await cluster.a.init()
    assert await cluster.a.add(producer, HERE, THERE) == [E.none, E.none]
    assert await cluster.a.produce(producer, HERE) is E.none
    assert await cluster.b.produce(producer, THERE) is E.none
    return producer


async def state(broker: OneBroker) -> TxnState:
    return (await broker.txns.describe(ID)).state


@pytest.mark.spec("TXN-38", "TXN-39")
async def test_markers_reach_the_leaders_of_their_partitions_on_other_brokers() -> None:
    async with two_brokers() as cluster:
        producer = await started(cluster)
        assert cluster.b.log(THERE).last_stable_offset == 0
        assert await cluster.a.end(producer) is E.none
        await cluster.a.side.until(LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.COMPLETE_COMMIT
        assert cluster.a.log(HERE).last_stable_offset == 2
        assert cluster.b.log(THERE).last_stable_offset == 2
        [request] = cluster.requests_of(WRITE_TXN_MARKERS)
        [marker] = request["markers"]
        assert marker["topics"] == [{"name": "there", "partition_indexes": [0]}]
        assert marker["coordinator_epoch"] == cluster.a.side.hosted.get(STATE).leader_epoch


@pytest.mark.spec("TXN-38")
@pytest.mark.parametrize("fault", ["unreachable", "loses_replies"])
async def test_markers_are_sent_again_until_the_other_broker_answers(fault: str) -> None:
    async with two_brokers() as cluster:
        producer = await started(cluster)
        getattr(cluster, fault).add(B)
        assert await cluster.a.end(producer) is E.none
        await cluster.a.side.until(20 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.PREPARE_COMMIT
        assert len(cluster.requests_of(WRITE_TXN_MARKERS)) < 30, "with a back-off"
        getattr(cluster, fault).clear()
        await cluster.a.side.until(22 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.COMPLETE_COMMIT
        assert cluster.b.log(THERE).last_stable_offset == cluster.b.log(THERE).end_offset


@pytest.mark.spec("TXN-38")
async def test_each_attempt_goes_to_the_leader_of_that_moment() -> None:
    async with two_brokers() as cluster:
        producer = await started(cluster)
        cluster.unreachable.add(B)
        assert await cluster.a.end(producer) is E.none
        await cluster.a.side.until(2 * LAST_RETRY_MS)
        await cluster.lead(A, THERE)
        await cluster.a.side.until(4 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.COMPLETE_COMMIT
        assert cluster.a.log(THERE).last_stable_offset == 2


@pytest.mark.spec("TXN-38")
async def test_a_broker_that_hangs_is_not_waited_for_once_it_is_declared_dead() -> None:
    async with two_brokers() as cluster:
        producer = await started(cluster)
        cluster.replies_pass[WRITE_TXN_MARKERS].clear()
        assert await cluster.a.end(producer) is E.none
        await cluster.a.side.until(3 * LAST_RETRY_MS)
        await cluster.lead(A, THERE)
        alone = PartitionMetadata(A, LeaderEpoch(1), (A,), BOTH)
        cluster.publish(THERE, alone, live=(A,))
        await cluster.a.side.until(6 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.COMPLETE_COMMIT


async def test_a_broker_stops_at_once_though_another_does_not_answer() -> None:
    async with two_brokers() as cluster:
        producer = await started(cluster)
        cluster.replies_pass[WRITE_TXN_MARKERS].clear()
        cluster.replies_pass[ADD_PARTITIONS_TO_TXN].clear()
        write = cluster.b.produce(producer.next_epoch(), THERE)
        assert await cluster.a.end(producer) is E.none
        clock, before_ms = cluster.a.side.clock, cluster.a.side.clock.mono_ms()
    assert await write is E.not_enough_replicas
    assert clock.mono_ms() - before_ms < 1_000


@pytest.mark.spec("TXN-38")
async def test_a_partition_without_a_leader_gets_its_marker_once_it_has_one() -> None:
    async with two_brokers() as cluster:
        producer = await started(cluster)
        cluster.publish(THERE, PartitionMetadata(NO_BROKER, LeaderEpoch(0), (B,), BOTH))
        assert await cluster.a.end(producer) is E.none
        await cluster.a.side.until(5 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.PREPARE_COMMIT
        assert not cluster.requests_of(WRITE_TXN_MARKERS)
        cluster.publish(THERE, PartitionMetadata(B, LeaderEpoch(1), (B,), BOTH))
        await cluster.a.side.until(7 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.COMPLETE_COMMIT


async def test_a_transaction_with_many_partitions_is_marked_in_bounded_requests() -> None:
    async with two_brokers() as cluster:
        await cluster.lead(A, STATE)
        many = [TopicPartition("many", index) for index in range(2 * PARTITIONS_MAX + 1)]
        await cluster.lead(B, *many, replicas=(B,))
        producer = await cluster.a.init()
        await cluster.a.txns.add(ID, producer, frozenset(many))
        assert await cluster.a.end(producer) is E.none
        await cluster.a.side.until(cluster.a.side.clock.mono_ms() + LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.COMPLETE_COMMIT
        sizes = [
            sum(len(topic["partition_indexes"]) for topic in marker["topics"])
            for request in cluster.requests_of(WRITE_TXN_MARKERS)
            for marker in request["markers"]
        ]
        assert sorted(sizes) == [1, PARTITIONS_MAX, PARTITIONS_MAX]


@pytest.mark.spec("TXN-32", "TXN-34")
@pytest.mark.parametrize("adds", [False, True])
async def test_a_produce_is_verified_by_the_coordinator_on_another_broker(adds: bool) -> None:
    async with two_brokers() as cluster:
        await cluster.lead(A, STATE)
        await cluster.lead(B, THERE)
        producer = await cluster.a.init()
        first = await cluster.b.produce(producer, THERE, adds=adds)
        assert first is (E.none if adds else E.invalid_txn_state)
        if not adds:
            assert await cluster.a.add(producer, THERE) == [E.none]
            assert await cluster.b.produce(producer, THERE) is E.none
        assert (await cluster.a.txns.describe(ID)).partitions == {THERE}
        count = len(cluster.requests)
        assert await cluster.b.produce(producer, THERE, sequence=1, adds=adds) is E.none
        assert len(cluster.requests) == count, "only the first batch of a transaction"


@pytest.mark.spec("TXN-34")
async def test_a_producer_retries_while_the_coordinator_cannot_be_reached() -> None:
    async with two_brokers() as cluster:
        await cluster.lead(A, STATE)
        await cluster.lead(B, THERE)
        producer = await cluster.a.init()
        cluster.unreachable.add(A)
        assert await cluster.b.produce(producer, THERE, adds=True) is E.not_enough_replicas
        cluster.unreachable.clear()
        assert await cluster.b.produce(producer, THERE, adds=True) is E.none


async def test_partitions_of_one_moment_are_verified_in_one_request_and_producers_do_not_mix() -> (
    None
):
    async with two_brokers() as cluster:
        await cluster.lead(A, STATE)
        keys = [TopicPartition("there", index) for index in range(3)]
        await cluster.lead(B, *keys)
        zombie = await cluster.a.init()
        producer = await cluster.a.init()
        await cluster.a.add(producer, *keys)
        writes = [cluster.b.produce(producer, key) for key in keys[:2]]
        fenced = cluster.b.produce(zombie, keys[2])
        assert [await write for write in writes] == [E.none, E.none]
        assert await fenced is E.invalid_producer_epoch
        entries = [
            request["transactions"] for request in cluster.requests_of(ADD_PARTITIONS_TO_TXN)
        ]
        assert [len(transactions) for transactions in entries] == [1, 1]
        assert entries[0][0]["topics"] == [{"name": "there", "partitions": [0, 1]}]


@pytest.mark.spec("TXN-34")
async def test_a_batch_is_refused_if_its_transaction_ends_while_it_is_verified() -> None:
    """Appended behind the marker it would start a transaction that nobody ends."""
    async with two_brokers() as cluster:
        await cluster.lead(A, STATE)
        await cluster.lead(B, THERE)
        producer = await cluster.a.init()
        await cluster.a.add(producer, THERE)
        cluster.replies_pass[ADD_PARTITIONS_TO_TXN].clear()
        write = cluster.b.produce(producer, THERE)
        await cluster.b.side.settle()
        assert await cluster.a.end(producer) is E.none
        await cluster.a.side.until(cluster.a.side.clock.mono_ms() + LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.COMPLETE_COMMIT
        cluster.replies_pass[ADD_PARTITIONS_TO_TXN].set()
        assert await write is E.invalid_txn_state
        assert cluster.b.log(THERE).last_stable_offset == cluster.b.log(THERE).end_offset


@pytest.mark.spec("TXN-35", "TXN-36")
@pytest.mark.parametrize("version", [3, 5])
async def test_offsets_are_committed_in_a_transaction_that_another_broker_coordinates(
    version: int,
) -> None:
    async with two_brokers() as cluster:
        await cluster.lead(A, STATE, HERE)
        await cluster.lead(B, OFFSETS)
        producer = await cluster.a.init()
        if version < 5:
            assert await cluster.a.add_offsets(producer, "g") is E.none
        reply = await cluster.b.ask(
            TXN_OFFSET_COMMIT,
            version,
            transactional_id=ID,
            group_id="g",
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=[
                {
                    "name": "here",
                    "partitions": [
                        {
                            "partition_index": 0,
                            "committed_offset": 5,
                            "committed_metadata": "",
                        }
                    ],
                }
            ],
        )
        assert reply.topics[0].partitions[0].error_code is E.none
        fetched = await cluster.b.groups.fetch("g", {"here": [0]}, stable=False)
        assert fetched["here"][0] is None
        assert await cluster.a.end(producer, version=4 if version < 5 else 5) is E.none
        await cluster.a.side.until(cluster.a.side.clock.mono_ms() + LAST_RETRY_MS)
        fetched = await cluster.b.groups.fetch("g", {"here": [0]}, stable=True)
        committed = fetched["here"][0]
        assert committed is not None and not isinstance(committed, ErrorCode)
        assert committed.offset == 5


async def test_a_deleted_topic_needs_no_marker() -> None:
    async with two_brokers() as cluster:
        producer = await started(cluster)
        cluster.unreachable.add(B)
        assert await cluster.a.end(producer) is E.none
        await cluster.a.side.until(2 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.PREPARE_COMMIT
        cluster.publish(THERE, PartitionMetadata(DELETED, LeaderEpoch(0), (), ()))
        await cluster.a.side.until(4 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.PREPARE_COMMIT, "metadata may be incomplete"
        await cluster.a.side.delete_topic(THERE.topic)
        await cluster.a.side.until(6 * LAST_RETRY_MS)
        assert await state(cluster.a) is TxnState.COMPLETE_COMMIT
