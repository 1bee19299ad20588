"""Fetching from the partitions led here: how much, how far, and when the waiting ends."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.log.log import Origin
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.replica.append import AppendOptions, PartitionAppend
from ottla.replica.fetch.options import Isolation
from ottla.replica.partition_fetch import UNKNOWN_TOPIC
from tests.fakes.data_side import (
    ME,
    OTHER,
    TOPIC_ID,
    TP,
    DataSide,
    data_side,
    fetch_from,
    values_of,
)

TWO = (ME, OTHER)
SECOND = TopicPartition("t", 1)
THIRD = BrokerId(2)
COMMITTED = Isolation.READ_COMMITTED


async def refusal(side: DataSide, offset: int = 0, **want: Any) -> ErrorCode:
    [one] = await side.fetch(fetch_from(offset, **want))
    return one.part.error_code


# How much


@pytest.mark.spec("REP-60", "LOG-52")
async def test_a_reply_is_cut_at_the_limit_of_the_partition_and_never_empty() -> None:
    async with data_side() as side:
        await side.lead()
        for value in (b"a" * 100, b"b" * 100, b"c" * 100):
            await side.append(value)
        size = len(side.batch(b"a" * 100))
        for limit, sent in ((3 * size, 3 * size), (2 * size + 5, 2 * size + 5), (1, size)):
            [one] = await side.fetch(fetch_from(0, max_bytes=limit))
            assert one.size == sent


@pytest.mark.spec("REP-60")
async def test_partitions_share_the_bytes_of_a_reply_in_the_order_asked() -> None:
    async with data_side() as side:
        keys = [TopicPartition("t", index) for index in range(4)]
        for key in keys:
            await side.lead(key)
            await side.append(b"x" * 100, key=key)
        size = len(side.batch(b"x" * 100))
        asked = [fetch_from(0, key) for key in keys]
        sizes = [one.size for one in await side.fetch(*asked, max_bytes=2 * size)]
        assert sizes == [size, size, 0, 0]
        sizes = [one.size for one in await side.fetch(*asked, max_bytes=1)]
        assert sizes == [size, 0, 0, 0], "one batch comes whole, or nobody ever gets on"
        asked.reverse()
        fetched = await side.fetch(*asked, max_bytes=2 * size)
        assert [one.part.index for one in fetched if one.size] == [3, 2]


# How far


@pytest.mark.spec("REP-61", "LOG-52", "WIRE-20", "REP-03")
async def test_consumers_see_what_is_committed_and_followers_all_there_is() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        await side.append(b"a")
        await side.append(b"b")
        side.start_fetch(1, replica_id=OTHER)
        consumer, follower = await side.read(), await side.read(replica_id=OTHER)
        assert values_of(consumer) == [b"a"]
        assert values_of(follower) == [b"a", b"b"]
        assert consumer.high_watermark == 1
        assert (await side.read(1)).error_code is ErrorCode.none, "between the two is no error"


def marker(kind: ControlType, producer: int = 9) -> bytes:
    return build_marker(EndTxnMarker(kind, 0), producer_id=producer, producer_epoch=0, timestamp=5)


async def transact(side: DataSide, *values: bytes, sequence: int = 0) -> None:
    header: Any = {"producer_id": 9, "producer_epoch": 0, "base_sequence": sequence}
    records = side.batch(*values, transactional=True, **header)
    await end(side, records)


async def end(side: DataSide, records: bytes) -> None:
    side.services.appends.append(
        [PartitionAppend(TP, records)], AppendOptions(1, 0, Origin.COORDINATOR), lambda _: None
    )


@pytest.mark.spec("WIRE-20", "WIRE-21", "REP-05", "LOG-52")
async def test_read_committed_ends_at_the_first_open_transaction_and_names_aborted_ones() -> None:
    async with data_side() as side:
        await side.lead()
        await side.append(b"plain")
        await transact(side, b"dropped")
        open_ = await side.read(isolation=COMMITTED)
        assert values_of(open_) == [b"plain"]
        assert (open_.last_stable_offset, open_.high_watermark) == (1, 2)
        assert (open_.aborted, (await side.read()).aborted) == ([], None)
        await end(side, marker(ControlType.ABORT))
        ended = await side.read(isolation=COMMITTED)
        assert ended.aborted == [(9, 1)]
        assert ended.last_stable_offset == 3


@pytest.mark.parametrize("offset", [-1, 1, 4])
async def test_an_offset_that_is_not_there_is_out_of_range(offset: int) -> None:
    async with data_side() as side:
        partition = await side.lead()
        for value in (b"a", b"b", b"c"):
            await side.append(value)
        partition.log.raise_start_offset(2)
        code = await refusal(side, offset=offset)
        assert code is ErrorCode.offset_out_of_range
        assert await refusal(side, offset=3) is ErrorCode.none


# Whom


async def test_who_asks_for_the_wrong_partition_or_epoch_hears_what_is_wrong() -> None:
    async with data_side() as side:
        await side.lead(epoch=3)
        nowhere = TopicPartition("u", 0)
        unnamed = TopicPartition(UNKNOWN_TOPIC, 0)
        other_id = UUID(int=8)
        assert await refusal(side, key=nowhere) is ErrorCode.unknown_topic_or_partition
        assert await refusal(side, key=unnamed, topic_id=other_id) is ErrorCode.unknown_topic_id
        assert await refusal(side, topic_id=other_id) is ErrorCode.inconsistent_topic_id
        assert await refusal(side, topic_id=TOPIC_ID) is ErrorCode.none
        assert await refusal(side, leader_epoch=2) is ErrorCode.fenced_leader_epoch
        assert await refusal(side, leader_epoch=4) is ErrorCode.unknown_leader_epoch
        assert await refusal(side, leader_epoch=3) is ErrorCode.none
        named = await refusal(side, key=unnamed, topic_id=TOPIC_ID)
        assert named is ErrorCode.none, "its name has become known meanwhile"
        await side.follow(epoch=4)
        assert await refusal(side) is ErrorCode.not_leader_or_follower
        side.hosted.mark_offline([TP])
        assert await refusal(side) is ErrorCode.kafka_storage_error


@pytest.mark.spec("REP-08")
async def test_a_broker_that_is_no_replica_is_refused() -> None:
    async with data_side() as side:
        await side.lead(epoch=3, replicas=TWO)
        [one] = await side.start_fetch(0, replica_id=THIRD)
        assert one.part.error_code is ErrorCode.not_leader_or_follower
        [one] = await side.fetch(fetch_from(0, leader_epoch=3), replica_id=THIRD)
        assert one.part.error_code is ErrorCode.unknown_leader_epoch


@pytest.mark.spec("REP-40")
async def test_a_reader_whose_last_batch_is_not_ours_hears_where_to_cut() -> None:
    async with data_side() as side:
        await side.lead(epoch=1)
        await side.append(b"a")
        await side.lead(epoch=4)
        await side.append(b"b")
        [cut] = await side.fetch(fetch_from(2, last_fetched_epoch=3))
        assert cut.part.diverging_epoch == (1, 1)
        assert cut.size == 0
        [beyond] = await side.fetch(fetch_from(5, last_fetched_epoch=1))
        assert beyond.part.diverging_epoch == (1, 1)
        [older] = await side.fetch(fetch_from(0, last_fetched_epoch=0))
        assert older.part.diverging_epoch is None, "it has nothing, so nothing of it is wrong"
        assert values_of(older.part) == [b"a", b"b"]
        [same] = await side.fetch(fetch_from(1, last_fetched_epoch=1))
        assert same.part.diverging_epoch is None
        assert values_of(same.part) == [b"b"]


# Followers


@pytest.mark.spec("REP-10", "REP-11", "REP-13", "REP-14", "REP-15", "REP-16", "REP-17", "REP-63")
async def test_the_walk_through_of_one_message_from_leader_to_committed() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO)
        told = await side.start_fetch(0, replica_id=OTHER)
        assert told[0].part.high_watermark == 0
        parked = side.start_fetch(0, replica_id=OTHER)
        assert not parked.done(), "without data it waits"
        consumer = side.start_fetch(0)
        waiting = side.start_append(b"a", acks=-1)
        [first] = parked.result()
        assert (values_of(first.part), first.part.high_watermark) == ([b"a"], 0)
        assert not waiting.done()
        assert not consumer.done()
        [second] = side.start_fetch(1, replica_id=OTHER).result()
        assert second.part.high_watermark == partition.log.high_watermark == 1
        assert waiting.result().error_code is ErrorCode.none
        assert values_of(consumer.result()[0].part) == [b"a"]


@pytest.mark.spec("REP-18")
async def test_the_slowest_follower_decides() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=(ME, OTHER, THIRD))
        for value in (b"a", b"b", b"c", b"d", b"e"):
            await side.append(value)
        side.start_fetch(3, replica_id=OTHER)
        assert partition.log.high_watermark == 0
        side.start_fetch(4, replica_id=THIRD)
        assert partition.log.high_watermark == 3


@pytest.mark.spec("REP-62", "DLY-29")
async def test_a_follower_hears_of_a_newer_high_watermark_at_once() -> None:
    async with data_side() as side:
        await side.lead(replicas=(ME, OTHER, THIRD))
        await side.append(b"a")
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        parked = side.start_fetch(1, replica_id=OTHER, max_wait_ms=60_000)
        assert not parked.done()
        side.start_fetch(1, replica_id=THIRD)
        assert parked.result()[0].part.high_watermark == 1
        again = side.start_fetch(1, replica_id=OTHER, max_wait_ms=60_000)
        assert not again.done(), "it has heard of it"


@pytest.mark.spec("REP-63", "REP-33")
@pytest.mark.parametrize(("offset", "epoch"), [(2, 3), (2, 0), (5, -1), (0, -1)])
async def test_a_follower_that_must_cut_its_log_counts_for_nothing_until_it_has(
    offset: int, epoch: int
) -> None:
    async with data_side() as side:
        await side.lead(epoch=0, replicas=TWO)
        await side.append(b"a")
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        partition = await side.lead(epoch=4, replicas=TWO)
        waiting = side.start_append(b"b", acks=-1, timeout_ms=60_000)
        partition.log.raise_start_offset(1)
        side.fetch(fetch_from(offset, last_fetched_epoch=epoch), replica_id=OTHER)
        assert not waiting.done()
        assert partition.require_leadership().followers[OTHER].end == -1
        side.fetch(fetch_from(2, last_fetched_epoch=4), replica_id=OTHER)
        assert waiting.done()


# Failures and numbers


async def test_a_disk_that_fails_under_a_reader_fails_nobody_else() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        await side.lead()
        await side.lead(SECOND)
        await side.append(b"a")
        side.disk.kill()  # every open file is gone, as with a disk that was pulled
        fetched = await side.fetch(fetch_from(0, max_bytes=1), fetch_from(0, SECOND), max_wait_ms=0)
        codes = [one.part.error_code for one in fetched]
        assert codes == [ErrorCode.kafka_storage_error, ErrorCode.none]
        assert side.hosted.offline == {TP}


@pytest.mark.spec("MON-12")
async def test_what_goes_out_is_counted_for_consumers_and_followers_apart() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        await side.append(b"x")
        size = len(side.batch(b"x"))
        group = "kafka_server_brokertopicmetrics"
        await side.start_fetch(0, replica_id=OTHER)
        await side.start_fetch(1, replica_id=OTHER)
        await side.start_fetch(0)
        await side.start_fetch(9)
        await side.fetch(fetch_from(0, TopicPartition("u", 0)))
        assert side.count(f"{group}_replication_bytes_out_total", topic="t") == size
        assert side.count(f"{group}_bytes_out_total", topic="t") == size
        assert side.count(f"{group}_all_topics_bytes_out_total") == size
        assert side.count(f"{group}_failed_fetch_requests_total", topic="t") == 1
        assert side.count(f"{group}_all_topics_failed_fetch_requests_total") == 2
        assert side.count(f"{group}_total_fetch_requests_total", topic="t") >= 4
        assert side.count(f"{group}_all_topics_total_fetch_requests_total") == 5
