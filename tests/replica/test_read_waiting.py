"""A fetch that waits: for what, for how long, and what ends it."""

from __future__ import annotations

import errno
from dataclasses import replace
from weakref import ref

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition
from ottla.replica.fetch.options import Isolation
from ottla.replica.partition_fetch import PartitionFetchResult
from ottla.replica.transitions import PartitionStop
from tests.fakes.data_side import (
    ME,
    NEW_TOPIC_ID,
    OTHER,
    TERMS,
    TP,
    data_side,
    fetch_from,
    values_of,
)

TWO = (ME, OTHER)
SECOND = TopicPartition("t", 1)
THIRD = BrokerId(2)
COMMITTED = Isolation.READ_COMMITTED


class Answer:
    def __call__(self, fetched: list[PartitionFetchResult]) -> None:
        """Takes the answer."""


@pytest.mark.spec("DLY-29", "REP-62")
async def test_a_fetch_waits_for_enough_bytes() -> None:
    async with data_side() as side:
        await side.lead()
        size = len(side.batch(b"x"))
        parked = side.start_fetch(0, min_bytes=2 * size + 1, max_wait_ms=60_000)
        for count in range(3):
            assert not parked.done(), count
            await side.append(b"x")
        assert values_of(parked.result()[0].part) == [b"x"] * 3
        assert side.clock.mono_ms() == 0


async def test_records_that_are_there_are_looked_up_once() -> None:
    async with data_side() as side:
        await side.lead()
        for _ in range(3):
            await side.append(b"x", b"y")
        before = side.disk.slices
        await side.start_fetch(1, max_wait_ms=60_000)  # within a batch
        assert side.disk.slices == before + 1


@pytest.mark.spec("DLY-29", "REP-13")
async def test_when_the_wait_is_over_the_answer_is_what_there_is() -> None:
    async with data_side() as side:
        await side.lead()
        await side.append(b"x")
        [one] = await side.start_fetch(0, min_bytes=10_000, max_wait_ms=250)
        assert values_of(one.part) == [b"x"]
        assert side.clock.mono_ms() == 250
        [nothing] = await side.start_fetch(1, max_wait_ms=250)
        assert (nothing.size, side.clock.mono_ms()) == (0, 500)


@pytest.mark.spec("DLY-29")
@pytest.mark.parametrize("answered", [True, False])
async def test_a_fetch_that_is_answered_or_forgotten_holds_on_to_nobody(answered: bool) -> None:
    """Its caller knows it, to call it off: a cycle a fetch would keep the collector busy."""

    async with data_side() as side:
        await side.lead()
        answer = Answer()
        told = ref(answer)
        parked = side.services.reads.fetch(
            [fetch_from(0)], replace(TERMS, max_wait_ms=60_000), answer
        )
        del answer
        assert parked is not None and told() is not None
        if answered:
            await side.append(b"x")
        else:
            parked.forget()
        assert parked.completed and told() is None
        parked.forget()  # whoever comes late changes nothing
        await side.append(b"y")


@pytest.mark.spec("REP-62")
async def test_a_fetch_that_may_not_wait_or_wants_nothing_is_answered_at_once() -> None:
    async with data_side() as side:
        await side.lead()
        assert side.start_fetch(0, max_wait_ms=0).done()
        assert side.start_fetch(0, min_bytes=0).done()
        assert side.fetch().result() == []
        nowhere = fetch_from(0, TopicPartition("u", 0))
        assert side.fetch(fetch_from(0), nowhere).done(), "an error must be heard"


@pytest.mark.spec("DLY-29")
async def test_waiting_for_several_partitions_ends_with_any_of_them() -> None:
    async with data_side() as side:
        await side.lead()
        await side.lead(SECOND)
        parked = side.fetch(fetch_from(0), fetch_from(0, SECOND))
        await side.append(b"x", key=SECOND)
        assert [one.size > 0 for one in parked.result()] == [False, True]
        assert side.hosted.waiting.fetch.delayed == 0


@pytest.mark.spec("DLY-29")
async def test_waiting_ends_with_the_leadership() -> None:
    async with data_side() as side:
        await side.lead()
        parked = side.start_fetch(0)
        await side.follow(epoch=1)
        assert parked.result()[0].part.error_code is ErrorCode.not_leader_or_follower


@pytest.mark.spec("REP-13", "REP-17")
async def test_a_follower_that_names_its_last_epoch_waits_as_others_do() -> None:
    async with data_side() as side:
        await side.lead(epoch=3, replicas=(ME, OTHER))
        await side.append(b"a")
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        position = fetch_from(1, leader_epoch=3, last_fetched_epoch=3)
        parked = side.fetch(position, replica_id=OTHER, max_wait_ms=500)
        await side.settle()
        assert not parked.done()
        await side.append(b"b")
        assert values_of(parked.result()[0].part) == [b"b"]


@pytest.mark.spec("DLY-29")
async def test_waiting_ends_with_the_epoch_it_began_under() -> None:
    async with data_side() as side:
        await side.lead(epoch=3)
        parked = side.fetch(fetch_from(0, leader_epoch=3))
        patient = side.fetch(fetch_from(0))
        await side.lead(epoch=4)
        assert parked.result()[0].part.error_code is ErrorCode.fenced_leader_epoch
        assert not patient.done(), "who names no epoch does not mind"


@pytest.mark.spec("DLY-29")
async def test_waiting_ends_with_the_partition_and_with_its_disk() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        await side.lead()
        parked = side.start_fetch(0)
        await side.services.transitions.stop_replicas(
            [PartitionStop(TP, LeaderEpoch(-2), delete=True)]
        )
        assert parked.result()[0].part.error_code is ErrorCode.not_leader_or_follower
        partition = await side.lead(topic_id=NEW_TOPIC_ID)
        parked = side.start_fetch(0)
        side.hosted.fail(partition, OSError(errno.EIO, "broken"))
        assert parked.result()[0].part.error_code is ErrorCode.kafka_storage_error


@pytest.mark.spec("DLY-29")
async def test_waiting_ends_when_the_log_is_cut_below_the_reader() -> None:
    async with data_side() as side:
        partition = await side.lead()
        await side.append(b"a")
        parked = side.start_fetch(1)
        partition.log.truncate_to(0)
        side.hosted.waiting.fetch.check(TP)
        assert parked.result()[0].part.error_code is ErrorCode.offset_out_of_range


@pytest.mark.spec("DLY-29")
async def test_a_reader_in_a_closed_segment_does_not_wait_for_more_of_it() -> None:
    async with data_side() as side:
        partition = await side.lead()
        await side.append(b"old")
        parked = side.start_fetch(0, min_bytes=10_000)
        partition.log.roll(side.clock.wall_ms())
        await side.append(b"new")
        assert values_of(parked.result()[0].part) == [b"old"]
        assert side.start_fetch(0, min_bytes=10_000).done()
        assert not side.start_fetch(1, min_bytes=10_000).done()


@pytest.mark.spec("DLY-29")
async def test_a_broker_that_stops_lets_nobody_wait() -> None:
    async with data_side() as side:
        await side.lead()
        parked = side.start_fetch(0, max_wait_ms=60_000)
        side.services.reads.stop_waiting()
        assert parked.result()[0].size == 0
        assert side.start_fetch(0, max_wait_ms=60_000).done()
        assert side.hosted.waiting.fetch.watched == 0
