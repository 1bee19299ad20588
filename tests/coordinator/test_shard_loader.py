"""A partition of an internal topic is read back whole, in turns, off the loop."""

from __future__ import annotations

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.shard_loader import ONE_BY_ONE, TURN, LoadRange
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord, decode_varint
from tests.coordinator.group_coordinator import LIMITS, OFFSETS, coordinating


@pytest.mark.spec("GRP-75", "GRP-76", "GRP-50")
async def test_every_record_is_replayed_and_kinds_that_are_not_known_are_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with coordinating() as made:
        for number in range(1_200):
            await made.commit(number, f"g{number % 7}")
        strange = build([NewRecord(b"\0\x63what", b"is it"), NewRecord(None, b"no key")])
        outcome = made.side.start_append(key=OFFSETS, records=strange)
        assert (await outcome).error_code is ErrorCode.invalid_topic_exception
        partition = made.side.hosted.get(OFFSETS)
        partition.log.config = made.side.config.topic("plain")
        partition.log.append(strange, leader_epoch=0, now_ms=WallMs(0))
        await made.commit(5_000, "g1")
        await made.side.follow(OFFSETS, epoch=1)
        await made.side.lead(OFFSETS, epoch=2)
        turns = 0
        while made.runtime.is_loading():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 2, "others had their turns meanwhile"
        assert await made.committed("g1") == 5_000
        assert await made.committed("g2") == 1_199 - (1_199 - 2) % 7
    assert "skipped 2 records of unknown type" in caplog.text


class Counting:
    """A shard that reads in bulk what is marked so, and writes down what it is given."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def decode(self, key: bytes, value: bytes | None) -> int | None:
        return int(key[1:])

    def replay(self, what: int, offset: int, producer_id: int) -> None:
        assert what == offset
        self.seen.append(offset)

    def replay_many(self, section: bytes, at: int, most: int, base_offset: int) -> tuple[int, int]:
        taken = 0
        while taken < most and at < len(section):
            size, begin = decode_varint(section, at)
            if section[begin + 4 : begin + 5] != b"b":  # attributes, time, offset, key's size, key
                break
            self.seen.append(base_offset + decode_varint(section, begin + 2)[0])
            at, taken = begin + size, taken + 1
        return at, taken

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        raise AssertionError("there is none")

    def on_loaded(self, now: int) -> Outcome[None]:
        raise AssertionError("only the runtime asks")

    def on_unloaded(self) -> tuple[()]:
        raise AssertionError("only the runtime asks")

    def on_timer(self, key: object, now: int) -> Outcome[None]:
        raise AssertionError("only the runtime asks")


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=40), max_size=8))
def test_records_read_in_bulk_and_one_by_one_are_replayed_once_each_and_in_order(
    batches: list[list[bool]],
) -> None:
    data, offset = b"", 0
    for kinds in batches:
        records = [
            NewRecord(b"%s%d" % (b"b" if bulk else b"o", offset + number), b"")
            for number, bulk in enumerate(kinds)
        ]
        data += build(records, base_offset=offset)
        offset += len(kinds)
    shard = Counting()
    stretch = LoadRange(shard, data)
    for _ in stretch.turns():
        pass
    assert shard.seen == list(range(offset))
    assert stretch.next_offset == (offset or -1)


@pytest.mark.spec("GRP-50", "GRP-75", "REC-40")
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_what_the_oldest_brokers_wrote_is_replayed_before_the_rest(
    magic: int, codec: Codec
) -> None:
    def records(start: int, count: int) -> list[NewRecord]:
        return [NewRecord(b"o%d" % at, b"", (), 7) for at in range(start, start + count)]

    data = b"".join(
        legacy.build(records(start, 100), magic=magic, codec=codec, base_offset=start)
        for start in range(0, 500, 100)
    )
    shard = Counting()
    stretch = LoadRange(shard, data + build(records(500, 10), base_offset=500))
    turns = sum(1 for _ in stretch.turns())
    assert shard.seen == list(range(510))
    assert stretch.next_offset == 510
    assert turns >= 3, "others had their turns meanwhile"
    shard = Counting()
    cut = LoadRange(shard, data[:-3])  # a read ends where it ends
    assert sum(1 for _ in cut.turns()) > 0
    assert shard.seen == list(range(cut.next_offset))


@pytest.mark.parametrize(("kind", "most"), [(b"b", TURN), (b"o", TURN // ONE_BY_ONE)])
def test_no_turn_is_longer_than_it_may_be(kind: bytes, most: int) -> None:
    data = build([NewRecord(b"%s%d" % (kind, number), b"") for number in range(60)])
    many = build(
        [NewRecord(b"%s%d" % (kind, number), b"") for number in range(60, 5_060)], base_offset=60
    )
    shard = Counting()
    last = 0
    for _ in LoadRange(shard, data + many).turns():
        assert len(shard.seen) - last <= most + 1
        last = len(shard.seen)
    assert len(shard.seen) == 5_060


async def test_a_partition_that_cannot_be_read_is_not_coordinated() -> None:
    async with coordinating() as made:
        garbage = build([NewRecord(b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3cut")])
        partition = made.side.hosted.get(OFFSETS)
        partition.log.append(garbage, leader_epoch=0, now_ms=WallMs(0))
        await made.side.follow(OFFSETS, epoch=1)
        await made.side.lead(OFFSETS, epoch=2)
        await made.side.settle()
        with pytest.raises(Exception, match="not_coordinator"):
            await made.committed()


async def test_a_partition_that_failed_to_load_is_loaded_again_after_a_while() -> None:
    class Unlucky(GroupShard):
        failures = 3

        def on_loaded(self, now: int) -> Outcome[None]:
            if Unlucky.failures:
                Unlucky.failures -= 1
                raise RuntimeError("a bug")
            return super().on_loaded(WallMs(now))

    async with coordinating() as made:
        await made.commit(5)
        await made.side.follow(OFFSETS, epoch=1)
        make = made.runtime._make_shard
        made.runtime._make_shard = lambda _: Unlucky(
            lambda: LIMITS, lambda: "id", lambda: made.side.metadata.image
        )
        await made.side.lead(OFFSETS, epoch=2)
        await made.side.settle()
        with pytest.raises(KafkaError, match="not_coordinator"):
            await made.committed()
        await made.side.until(6_900)
        assert Unlucky.failures == 0, "after 1, 2 and 4 seconds"
        assert not made.runtime.active()
        await made.side.until(7_200)
        assert await made.committed() == 5
        made.runtime._make_shard = make


async def test_a_partition_that_is_lost_is_not_loaded_again() -> None:
    async with coordinating() as made:
        garbage = build([NewRecord(b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3cut")])
        made.side.hosted.get(OFFSETS).log.append(garbage, leader_epoch=0, now_ms=WallMs(0))
        await made.side.follow(OFFSETS, epoch=1)
        await made.side.lead(OFFSETS, epoch=2)
        await made.side.settle()
        await made.side.follow(OFFSETS, epoch=3)
        await made.side.until(5_000)
        assert not made.runtime.is_loading()


async def test_a_small_partition_does_not_wait_for_a_large_one() -> None:
    async with coordinating() as made:
        small = TopicPartition(OFFSETS.topic, 1)
        for number in range(3 * TURN):
            await made.commit(number, f"g{number}")
        await made.side.lead(small)
        await made.side.follow(OFFSETS, epoch=1)
        await made.side.follow(small, epoch=1)
        await made.side.lead(OFFSETS, epoch=2)
        await made.side.lead(small, epoch=2)
        while not made.runtime.active():
            await made.side.once()
        assert [owned.index for owned in made.runtime.active()] == [1]
        assert made.runtime.is_loading()
