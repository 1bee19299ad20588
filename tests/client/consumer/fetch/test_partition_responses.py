from __future__ import annotations

from typing import Any

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.errors import OffsetOutOfRange
from ottla.client.consumer.position import seeking
from ottla.client.errors import KafkaError, RecordTooLarge
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.hot.fetch import FetchedPartition
from tests.client.consumer.batches import batch
from tests.client.consumer.scripted import LIST_OFFSETS, OFFSET_FETCH, Rig, committed, view

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)


def refusing(code: ErrorCode) -> Any:
    return lambda tp, asked: FetchedPartition(tp.partition, code)


@pytest.mark.spec("CON-17")
@pytest.mark.parametrize(
    "code",
    [ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch, ErrorCode.unknown_topic_id],
)
async def test_a_leader_that_is_none_any_more_is_looked_up(code: ErrorCode) -> None:
    rig = Rig()
    rig.cluster.logs[HERE] = [batch(0, 1)]
    rig.cluster.fetch_answers = [refusing(code)]
    rig.cluster.next_views = [view({"t": 2}, leader=2, epoch=1)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        assert len(await rig.poll(5)) == 1
    assert [node for node, _ in rig.cluster.fetched][:2] == [1, 2]


@pytest.mark.spec("CON-17")
async def test_a_leader_named_by_a_former_one_is_fetched_from_at_once() -> None:
    rig = Rig()
    rig.cluster.logs[HERE] = [batch(0, 1)]
    refused = FetchedPartition(0, ErrorCode.not_leader_or_follower, current_leader=(2, 1))
    rig.cluster.fetch_answers = [lambda tp, asked: refused]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        assert len(await rig.poll(5)) == 1
    assert [node for node, _ in rig.cluster.fetched][:2] == [1, 2]
    assert not rig.cluster.refreshed, "no metadata request was needed"


@pytest.mark.spec("CON-12")
@pytest.mark.parametrize("policy", ["earliest", "none"])
async def test_out_of_range_is_reset_or_said(policy: str) -> None:
    rig = Rig(auto_offset_reset=policy, group_id="g")
    rig.cluster.script[OFFSET_FETCH] = committed({HERE: (99, -1)})
    rig.cluster.logs[HERE] = [batch(0, 3)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        if policy == "none":
            with pytest.raises(OffsetOutOfRange, match="t-0 at 99"):
                await rig.until(lambda: False)
        else:
            assert [record.offset for record in await rig.poll()] == [0, 1, 2]
            assert rig.cluster.times(LIST_OFFSETS) == 1


async def test_the_nearest_replica_is_read_and_the_leader_when_it_lags() -> None:
    rig = Rig(client_rack="eu")
    rig.cluster.logs[HERE] = [batch(0, 2)]

    def elsewhere(tp: TopicPartition, asked: Any) -> FetchedPartition:
        return FetchedPartition(tp.partition, ErrorCode.none, 2, 2, 0, None, 2)

    rig.cluster.fetch_answers = [elsewhere, refusing(ErrorCode.offset_out_of_range)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        assert len(await rig.poll(5)) == 2
    assert [node for node, _ in rig.cluster.fetched][:3] == [1, 2, 1]
    assert rig.cluster.times(LIST_OFFSETS) == 1, "nothing was reset"


async def test_a_batch_that_can_never_come_whole_is_said() -> None:
    rig = Rig(max_partition_fetch_bytes=50)

    def half(tp: TopicPartition, asked: Any) -> FetchedPartition:
        data = batch(0, 50)[:50]
        return FetchedPartition(tp.partition, ErrorCode.none, 9, 9, 0, None, -1, None, None, data)

    rig.cluster.fetch_answers = [half]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        with pytest.raises(RecordTooLarge, match=r"max\.partition\.fetch\.bytes=50"):
            await rig.until(lambda: False)


async def test_what_is_forbidden_is_raised() -> None:
    rig = Rig()
    rig.cluster.fetch_answers = [refusing(ErrorCode.topic_authorization_failed)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        with pytest.raises(KafkaError) as caught:
            await rig.until(lambda: False)
        assert caught.value.code is ErrorCode.topic_authorization_failed


async def test_an_answer_for_where_the_user_no_longer_is_counts_for_nothing() -> None:
    rig = Rig()
    rig.cluster.logs[HERE] = [batch(0, 3), batch(3, 3)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.until(lambda: bool(rig.cluster.fetched))
        seeking.seek(core, HERE, 4)
        assert [record.offset for record in await rig.poll()] == [4, 5]
