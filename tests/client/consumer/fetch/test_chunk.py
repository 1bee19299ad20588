from __future__ import annotations

import pytest

from ottla.client.consumer.fetch.chunk import Chunk, ChunkReader
from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.client.consumer.record import Record
from ottla.client.errors import SerializationError
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import TIME, batch, view

PLAIN = ChunkReader(None, None, check_crc=True)


def chunk(*batches: bytes, offset: int = 0) -> Chunk:
    part = AssignedPartition(TopicPartition("t", 3))
    part.seek(offset)
    return Chunk(part, part.version, view(*batches))


@pytest.mark.spec("CON-15", "CON-16", "CON-08")
def test_records_come_in_pieces_of_any_size() -> None:
    one = chunk(batch(0, 5), batch(5, 2))
    first, last = one.take(3, PLAIN)
    assert first[0] == Record("t", 3, 0, TIME, 0, b"k0", b"0", (), 0)
    assert ([record.offset for record in first], last) == ([0, 1, 2], False)
    rest, last = one.take(100, PLAIN)
    assert ([record.offset for record in rest], last) == ([3, 4, 5, 6], True)


def test_a_chunk_knows_where_it_ends_before_it_is_decoded() -> None:
    one = chunk(batch(0, 5), batch(9, 2, leader_epoch=6))
    assert (one.end, one.end_epoch) == (11, 6)


def test_a_chunk_of_a_partition_that_moved_is_worthless() -> None:
    one = chunk(batch(0, 1))
    assert one.is_current
    one.part.seek(5)
    assert not one.is_current


def test_a_chunk_without_a_record_is_read_through_at_once() -> None:
    assert chunk(batch(0, 3), offset=3).take(10, PLAIN) == ([], True)


def test_a_bad_batch_is_said_when_its_turn_comes() -> None:
    bad = bytearray(batch(2, 1))
    bad[-2] ^= 1
    one = chunk(batch(0, 2), bytes(bad))
    records, last = one.take(10, PLAIN)
    assert (len(records), last) == (2, False)
    one.part.offset = 2
    with pytest.raises(KafkaError, match="cannot decode t-3 at offset 2") as caught:
        one.take(10, PLAIN)
    assert caught.value.code is ErrorCode.corrupt_message


def test_deserializers_never_see_a_null() -> None:
    from ottla.protocol.records.batch import build
    from ottla.protocol.records.record import NewRecord

    reading = ChunkReader(bytes.decode, int, check_crc=True)
    records, _ = chunk(build([NewRecord(b"a", b"1"), NewRecord(None, None)])).take(9, reading)
    assert [(record.key, record.value) for record in records] == [("a", 1), (None, None)]


def test_what_does_not_deserialize_is_the_next_one_until_it_is_sought_past() -> None:
    def picky(data: bytes) -> int:
        if data == b"2":
            raise ValueError("no twos")
        return int(data)

    reading = ChunkReader(None, picky, check_crc=True)
    one = chunk(batch(0, 4))
    records, last = one.take(10, reading)
    assert ([record.value for record in records], last) == ([0, 1], False)
    for _ in range(2):
        with pytest.raises(SerializationError, match="cannot deserialize t-3 at offset 2"):
            one.take(10, reading)
