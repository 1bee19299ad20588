from __future__ import annotations

import pytest

from ottla.client.consumer.fetch.buffer import Buffer
from ottla.client.consumer.fetch.chunk import Chunk, ChunkReader
from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import batch, marker, view


class Bench:
    """A buffer, and who it tells."""

    def __init__(self) -> None:
        self.drained = 0
        self.broken: list[Chunk] = []
        self.buffer = Buffer(
            ChunkReader(None, None, check_crc=True), self._drained, self.broken.append
        )

    def _drained(self) -> None:
        self.drained += 1

    def add(self, part: AssignedPartition, *batches: bytes) -> None:
        self.buffer.add(Chunk(part, part.version, view(*batches)))


def partition(index: int = 0, offset: int = 0) -> AssignedPartition:
    part = AssignedPartition(TopicPartition("t", index))
    part.seek(offset)
    return part


def offsets(buffer: Buffer, most: int = 100) -> list[int]:
    return [record.offset for record in buffer.take(most)]


@pytest.mark.spec("CON-15")
def test_positions_follow_what_is_taken_and_a_read_chunk_makes_room() -> None:
    bench, part = Bench(), partition()
    bench.add(part, batch(0, 5, leader_epoch=2))
    assert offsets(bench.buffer, 2) == [0, 1]
    assert (part.offset, part.epoch, bench.drained) == (2, 2, 0)
    assert offsets(bench.buffer) == [2, 3, 4]
    assert (part.offset, part.arrived, part.finished, bench.drained) == (5, 1, 1, 1)
    assert not bench.buffer.has_some


def test_one_poll_takes_from_several_chunks() -> None:
    bench, one, two = Bench(), partition(0), partition(1)
    bench.add(one, batch(0, 2))
    bench.add(two, batch(0, 2))
    assert offsets(bench.buffer, 3) == [0, 1, 0]
    assert offsets(bench.buffer, 3) == [1]


@pytest.mark.spec("CON-18")
def test_positions_move_past_what_nobody_sees() -> None:
    bench, part = Bench(), partition()
    bench.add(part, marker(0, 1, commit=True))
    assert offsets(bench.buffer) == []
    assert part.offset == 1


@pytest.mark.spec("CON-11")
def test_what_was_fetched_before_a_pause_waits() -> None:
    bench, quiet, loud = Bench(), partition(0), partition(1)
    bench.add(quiet, batch(0, 1))
    bench.add(loud, batch(5, 1))
    quiet.paused = True
    assert offsets(bench.buffer) == [5]
    assert not bench.buffer.has_some
    quiet.paused = False
    bench.add(loud, batch(6, 1))
    bench.buffer.resume(quiet)
    assert offsets(bench.buffer) == [0, 6]


def test_chunks_of_partitions_that_moved_are_dropped() -> None:
    bench, part = Bench(), partition()
    bench.add(part, batch(0, 2))
    part.seek(7)
    bench.add(part, batch(7, 1))
    assert offsets(bench.buffer) == [7]


def test_an_error_comes_after_what_is_good_and_asks_for_another_fetch() -> None:
    bad = bytearray(batch(2, 1))
    bad[-2] ^= 1
    bench, one, two = Bench(), partition(0), partition(1, 2)
    bench.add(one, batch(0, 2))
    bench.add(two, bytes(bad))
    assert offsets(bench.buffer) == [0, 1]
    with pytest.raises(KafkaError, match="t-1 at offset 2"):
        bench.buffer.take(10)
    assert [chunk.part for chunk in bench.broken] == [two]
    assert two.offset == 2


def test_whole_chunks_can_be_taken_and_put_back() -> None:
    bench, part = Bench(), partition()
    bench.add(part, batch(0, 2))
    bench.add(part, batch(2, 2))
    chunks = bench.buffer.take_chunks()
    assert [chunk.end for chunk in chunks] == [2, 4]
    bench.buffer.done(chunks[0])
    assert (part.offset, part.finished, bench.drained) == (2, 1, 0)
    bench.buffer.put_back(chunks[1:])
    assert offsets(bench.buffer) == [2, 3]
