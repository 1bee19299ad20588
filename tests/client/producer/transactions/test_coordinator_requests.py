"""A producer's talk with the coordinator of its transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ottla
from ottla.client.errors import ErrorCode, Fenced, KafkaError, UnsupportedVersion, UserError
from tests.client.producer.broker_rig import producing
from tests.client.producer.transactions.transaction_brokers import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    FIRST,
    OFFSET_COMMIT,
    adds_all,
    commits_all,
    newer,
    older,
)
from tests.fakes.scripted_broker import (
    FIND_COORDINATOR,
    HANG_UP,
    INIT_PRODUCER_ID,
    PRODUCE,
    ScriptedBroker,
)


def asked(broker: ScriptedBroker, *keys: int) -> list[tuple[int, int]]:
    return [(key, version) for key, version, _ in broker.asked if key in keys]


@pytest.mark.spec("TXN-28", "TXN-29", "TXN-32", "TXN-34", "TXN-37")
@pytest.mark.real_loop
async def test_partitions_are_announced_before_their_first_record_and_the_end_afterwards() -> None:
    async with older() as broker, producing(broker, transactional_id="x") as producer:
        broker.script(INIT_PRODUCER_ID, FIRST)
        await producer.init_transactions()
        async with producer.transaction():
            for partition in (0, 1, 0):
                await producer.send("t", b"", partition=partition)
        async with producer.transaction():
            await producer.send("t", b"", partition=1)
        flow = [key for key, _ in asked(broker, ADD_PARTITIONS, PRODUCE, END_TXN)]
        assert flow[0] == flow[-3] == ADD_PARTITIONS
        assert flow[-1] == END_TXN
        assert flow.count(END_TXN) == 2
        assert max(version for _, version in asked(broker, PRODUCE)) == 11
        assert max(version for _, version in asked(broker, END_TXN)) == 4
        assert {each[1:3] for each in broker.arrived} == {(5, 3)}
        assert all(each.transactional for each in broker.arrived)
        begins = [each.sequence for each in broker.arrived if each.tp.partition == 1]
        assert begins == [0, 1], "numbers go on while the epoch stays"


@pytest.mark.spec("TXN-17", "TXN-34", "TXN-37")
@pytest.mark.real_loop
async def test_where_brokers_add_partitions_themselves_every_transaction_has_its_own_epoch() -> (
    None
):
    async with newer() as broker, producing(broker, transactional_id="x") as producer:
        broker.script(INIT_PRODUCER_ID, FIRST)
        await producer.init_transactions()
        for _ in range(2):
            async with producer.transaction():
                await producer.send("t", b"", partition=0)
                await producer.send_offsets({ottla.TopicPartition("t", 1): 5}, "g")
        assert asked(broker, ADD_PARTITIONS, ADD_OFFSETS) == []
        assert [version for _, version in asked(broker, PRODUCE)] == [13, 13]
        assert [(each.epoch, each.sequence) for each in broker.arrived] == [(3, 0), (4, 0)]


@pytest.mark.spec("TXN-31")
@pytest.mark.real_loop
async def test_an_empty_transaction_is_no_brokers_business() -> None:
    async with newer() as broker, producing(broker, transactional_id="x") as producer:
        await producer.init_transactions()
        async with producer.transaction():
            pass
        producer.begin()
        await producer.abort()
        assert asked(broker, END_TXN) == []


@pytest.mark.spec("TXN-29", "TXN-33", "TXN-40", "TXN-52")
@pytest.mark.real_loop
async def test_what_passes_at_the_coordinator_is_tried_again() -> None:
    async with older() as broker, producing(broker, transactional_id="x") as producer:
        busy = {**FIRST, "error_code": ErrorCode.concurrent_transactions}
        moved = {"error_code": ErrorCode.not_coordinator}
        broker.script(INIT_PRODUCER_ID, busy, {**busy, **moved}, HANG_UP, FIRST)
        await producer.init_transactions()
        producer.begin()
        broker._script[ADD_PARTITIONS].appendleft(
            lambda request: adds_all(request, ErrorCode.concurrent_transactions)
        )
        await producer.send("t", b"", partition=0)
        broker.script(END_TXN, moved, HANG_UP)
        await producer.commit()
        assert broker.count(FIND_COORDINATOR) >= 5, "asked anew whenever it was wrong or gone"
        assert len(broker.arrived) == 1


@pytest.mark.spec("TXN-35", "TXN-36", "TXN-50")
@pytest.mark.real_loop
async def test_offsets_go_to_the_groups_coordinator_with_who_commits_them() -> None:
    async with older() as broker, producing(broker, transactional_id="x") as producer:
        broker.script(INIT_PRODUCER_ID, FIRST)
        await producer.init_transactions()
        producer.begin()
        offsets: dict[ottla.TopicPartition, int | ottla.OffsetAndMetadata] = {
            ottla.TopicPartition("t", 0): 5,
            ottla.TopicPartition("t", 1): ottla.OffsetAndMetadata(6, "note", 2),
        }
        broker._script[OFFSET_COMMIT].appendleft(
            lambda request: commits_all(request, ErrorCode.not_coordinator)
        )
        await producer.send_offsets(offsets, "g")
        await producer.commit()
        assert asked(broker, ADD_OFFSETS, OFFSET_COMMIT, END_TXN) == [
            (ADD_OFFSETS, 4), (OFFSET_COMMIT, 4), (OFFSET_COMMIT, 4), (END_TXN, 4)
        ]  # fmt: skip
        request = next(each for key, _, each in broker.asked if key == OFFSET_COMMIT)
        assert (request.group_id, request.producer_id, request.producer_epoch) == ("g", 5, 3)
        [topic] = request.topics
        told = [
            (each.committed_offset, each.committed_metadata, each.committed_leader_epoch)
            for each in topic.partitions
        ]
        assert told == [(5, "", -1), (6, "note", 2)]


@pytest.mark.spec("TXN-50", "TXN-52")
@pytest.mark.real_loop
async def test_offsets_that_are_refused_break_the_transaction() -> None:
    async with older() as broker, producing(broker, transactional_id="x") as producer:
        await producer.init_transactions()
        producer.begin()
        place = ottla.TopicPartition("t", 0)
        with pytest.raises(UserError, match="expected 0 or more"):
            await producer.send_offsets({place: -1}, "g")
        broker._script[OFFSET_COMMIT].appendleft(
            lambda request: commits_all(request, ErrorCode.illegal_generation)
        )
        with pytest.raises(KafkaError, match="cannot commit the offset of t-0: illegal_generation"):
            await producer.send_offsets({place: 1}, "g")
        with pytest.raises(ottla.AbortNeeded):
            await producer.commit()
        await producer.abort()


@pytest.mark.spec("TXN-33", "TXN-52")
@pytest.mark.real_loop
async def test_a_partition_that_may_not_be_written_breaks_the_transaction() -> None:
    async with older() as broker, producing(broker, transactional_id="x") as producer:
        await producer.init_transactions()
        producer.begin()
        broker._script[ADD_PARTITIONS].appendleft(
            lambda request: adds_all(request, ErrorCode.topic_authorization_failed)
        )
        delivery = await producer.send("t", b"", partition=0)
        with pytest.raises(ottla.AbortNeeded, match="topic_authorization_failed"):
            await producer.commit()
        await producer.abort()
        with pytest.raises(KafkaError, match="t-0: topic_authorization_failed"):
            await delivery


@pytest.mark.spec("TXN-17", "TXN-52")
@pytest.mark.parametrize("code", [ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch])
@pytest.mark.parametrize("make", [older, newer])
@pytest.mark.real_loop
async def test_who_is_fenced_at_the_end_can_only_close(
    code: ErrorCode, make: Callable[[], ScriptedBroker]
) -> None:
    async with make() as broker, producing(broker, transactional_id="x") as producer:
        await producer.init_transactions()
        producer.begin()
        await producer.send("t", b"", partition=0)
        broker._script.pop(END_TXN, None)
        broker.script(END_TXN, {**FIRST, "error_code": code})
        with pytest.raises(Fenced):
            await producer.commit()
        with pytest.raises(Fenced):
            await producer.abort()
        with pytest.raises(Fenced):
            producer.begin()


@pytest.mark.real_loop
async def test_a_broker_without_two_phase_commit_is_told_apart() -> None:
    broker = older()
    broker.versions[INIT_PRODUCER_ID] = (0, 5)
    options = {"transactional_id": "x", "transaction_two_phase_commit_enable": True}
    async with broker, producing(broker, **options) as producer:
        with pytest.raises(UnsupportedVersion, match="does not support two-phase commit"):
            await producer.init_transactions()
