"""Batches are built, walked, placed and checked as Kafka builds, walks, places and checks them."""

from __future__ import annotations

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.batch import (
    HEADER_SIZE,
    CorruptBatch,
    build,
    compute_crc,
    crc_ok,
    read_header,
    set_offsets,
    stamp,
    walk,
)
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord, Record, read_records
from tests.protocol.records.samples import new_records

ONE = [NewRecord(b"k", b"v", timestamp=1_000)]


@pytest.mark.spec("REC-02", "REC-13", "REC-16", "REC-20")
def test_a_batch_is_these_bytes() -> None:
    assert build(ONE).hex(" ") == (
        "00 00 00 00 00 00 00 00 00 00 00 3a ff ff ff ff 02 "
        + compute_crc(build(ONE)).to_bytes(4, "big").hex(" ")
        + " 00 00 00 00 00 00 00 00 00 00 00 00 03 e8 00 00 00 00 00 00 03 e8 "
        "ff ff ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 01 "
        "10 00 00 00 02 6b 02 76 00"
    )


@pytest.mark.spec("REC-13", "REC-16", "REC-21")
@given(st.lists(new_records.filter(lambda r: r.timestamp >= 0), min_size=1, max_size=10))
def test_another_implementation_builds_the_same_bytes(records: list[NewRecord]) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=1, producer_id=7, producer_epoch=3,
        base_sequence=11, batch_size=1 << 20,
    )  # fmt: skip
    for at, record in enumerate(records):
        builder.append(at, record.timestamp, record.key, record.value, list(record.headers))
    ours = build(
        records, transactional=True, producer_id=7, producer_epoch=3, base_sequence=11
    )  # fmt: skip
    assert ours == bytes(builder.build())


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@given(records=st.lists(new_records, min_size=1, max_size=10))
def test_another_implementation_reads_what_is_built(codec: Codec, records: list[NewRecord]) -> None:
    theirs = DefaultRecordBatch(build(records, base_offset=50, codec=codec))
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value) for r in theirs] == [
        (50 + at, r.timestamp, r.key, r.value) for at, r in enumerate(records)
    ]


@pytest.mark.spec("REC-16")
def test_the_checksum_covers_all_from_the_attributes_on() -> None:
    batch = bytearray(build(ONE, codec=Codec.ZSTD))
    assert crc_ok(batch)
    for at in range(len(batch)):
        damaged = bytearray(batch)
        damaged[at] ^= 1
        assert crc_ok(damaged) == (at < 17), at  # the checksum itself is at 17


@pytest.mark.spec("REC-16", "REC-17")
def test_a_leader_places_a_batch_without_touching_its_checksum() -> None:
    batch = bytearray(build(ONE))
    head = bytearray(batch[:16])
    set_offsets(head, 2**40, 9)
    placed = bytes(head) + bytes(batch[16:])
    assert crc_ok(placed)
    header = read_header(placed)
    assert (header.base_offset, header.leader_epoch) == (2**40, 9)
    assert header.length == read_header(batch).length
    set_offsets(memoryview(batch), 5, 1)
    assert read_header(batch).base_offset == 5


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_can_be_stamped_as_if_built_by_that_producer(codec: Codec) -> None:
    batch = bytearray(build(ONE, codec=codec))
    stamp(batch, producer_id=2**40, producer_epoch=3, base_sequence=9, transactional=True)
    assert batch == build(
        ONE, codec=codec, producer_id=2**40, producer_epoch=3, base_sequence=9, transactional=True
    )
    stamp(batch, producer_id=-1, producer_epoch=-1, base_sequence=-1)
    assert batch == build(ONE, codec=codec)


@pytest.mark.spec("REC-02", "REC-14")
def test_batches_lie_back_to_back_and_a_cut_tail_is_left_out() -> None:
    batches = [build(ONE * n, base_offset=at) for n, at in ((1, 0), (3, 1), (2, 4))]
    whole = b"".join(batches)
    positions = [0, len(batches[0]), len(batches[0]) + len(batches[1])]
    assert [at for at, _ in walk(whole)] == positions
    assert [header.base_offset for _, header in walk(memoryview(whole))] == [0, 1, 4]
    for cut in range(1, len(batches[2])):
        assert [at for at, _ in walk(whole[:-cut])] == positions[:2]


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_batch_of_an_impossible_length_is_corrupt(length: int) -> None:
    first = build(ONE)
    second = bytearray(build(ONE))
    second[8:12] = length.to_bytes(4, "big", signed=True)
    walked = walk(first + second)
    next(walked)
    with pytest.raises(CorruptBatch) as fault:
        next(walked)
    assert fault.value.position == len(first)


@pytest.mark.parametrize("magic", [0, 1, 3, 127])
def test_a_batch_of_another_format_is_not_walked_over(magic: int) -> None:
    batch = bytearray(build(ONE))
    batch[16] = magic
    with pytest.raises(CorruptBatch, match=f"magic {magic}"):
        list(walk(batch))


@pytest.mark.spec("REC-19")
def test_timestamps_of_a_batch_are_the_first_and_the_largest() -> None:
    header = read_header(build([NewRecord(b"", b"", timestamp=t) for t in (50, 90, 20)]))
    assert (header.base_timestamp, header.max_timestamp) == (50, 90)


@pytest.mark.spec("REC-18")
def test_an_empty_batch_keeps_its_place_and_its_producer() -> None:
    batch = build(
        [], base_offset=7, last_offset_delta=3, producer_id=9, producer_epoch=1, base_sequence=5,
        max_timestamp=99, codec=Codec.GZIP,
    )  # fmt: skip
    header = read_header(batch)
    assert len(batch) == HEADER_SIZE
    assert (header.count, header.next_offset, header.last_sequence) == (0, 11, 8)
    assert (header.base_timestamp, header.max_timestamp) == (-1, 99)
    assert crc_ok(batch)
    assert list(read_records(batch)) == []


def test_a_delete_horizon_stands_in_the_first_timestamp() -> None:
    records = [Record(3, 1_000, b"k", None)]
    batch = build(records, base_offset=3, delete_horizon_ms=5_000)
    header = read_header(batch)
    assert header.has_delete_horizon
    assert header.base_timestamp == 5_000
    assert list(read_records(batch)) == records


@pytest.mark.spec("REC-34")
@pytest.mark.parametrize("codec", Codec)
def test_only_the_records_are_compressed(codec: Codec) -> None:
    header = read_header(build(ONE * 100, codec=codec))
    assert (header.codec, header.count, header.max_timestamp) == (codec, 100, 1_000)
