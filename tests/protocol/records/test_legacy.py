"""Logs of brokers before 0.11 are read by the rules of their time."""

from __future__ import annotations

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.records.compression import Codec, compress
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.legacy import CODECS, MIN_SIZE, build, entries, records
from ottla.protocol.records.record import NewRecord, Record

ONE = [NewRecord(b"key", b"value", timestamp=1_000)]
MAGICS = (0, 1)
few = settings(max_examples=30)
messages = st.lists(
    st.builds(
        NewRecord,
        key=st.none() | st.binary(max_size=50),
        value=st.none() | st.binary(max_size=50),
        timestamp=st.integers(0, 2**45),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.spec("REC-03", "REC-04", "REC-08", "REC-09")
def test_sizes_are_those_of_the_format() -> None:
    assert len(build(ONE, magic=0)) == 34
    assert len(build(ONE, magic=1)) == 42
    assert build(ONE, magic=0)[16:].hex(" ") == "00 00 00 00 00 03 6b 65 79 00 00 00 05 " + (
        b"value".hex(" ")
    )


@pytest.mark.spec("REC-01", "REC-04", "REC-05", "REC-09")
@pytest.mark.parametrize("magic", MAGICS)
@few
@given(some=messages)
def test_another_implementation_writes_the_same_bytes(magic: int, some: list[NewRecord]) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=0, batch_size=1 << 20)
    for at, message in enumerate(some):
        builder.append(at, message.timestamp, message.key, message.value)
    assert build(some, magic=magic) == bytes(builder.build())


@pytest.mark.spec("REC-28", "REC-29", "REC-30", "REC-31")
@pytest.mark.parametrize("magic", MAGICS)
@few
@given(some=messages)
def test_another_implementation_reads_compressed_sets_alike(
    magic: int, some: list[NewRecord]
) -> None:
    data = build(some, magic=magic, base_offset=50, codec=Codec.GZIP)
    theirs = [(r.offset, r.key, r.value) for r in LegacyRecordBatch(data, magic)]
    (entry,) = entries(data)
    assert [(r.offset, r.key, r.value) for r in records(entry)] == theirs


@pytest.mark.spec("REC-04", "REC-28", "REC-29", "REC-30")
@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("codec", CODECS)
@few
@given(some=messages)
def test_messages_read_back_as_they_were_written(
    magic: int, codec: Codec, some: list[NewRecord]
) -> None:
    data = build(some, magic=magic, base_offset=1025, codec=codec)
    read = [record for entry in entries(data) for record in records(entry)]
    assert read == [
        Record(1025 + at, message.timestamp if magic else -1, message.key, message.value)
        for at, message in enumerate(some)
    ]
    assert all(entry.crc_ok for entry in entries(data))


@pytest.mark.spec("REC-29", "REC-30")
def test_a_set_carries_the_offset_of_its_last_message() -> None:
    six = build(ONE * 6, magic=1, base_offset=1025, codec=Codec.GZIP)
    (entry,) = entries(six)
    assert entry.offset == 1030
    assert [record.offset for record in records(entry)] == list(range(1025, 1031))


@pytest.mark.spec("REC-30")
def test_a_compacted_set_keeps_its_gaps() -> None:
    kept = [Record(10, 1, b"a", b""), Record(14, 1, b"b", b"")]
    (entry,) = entries(build(kept, magic=1, codec=Codec.SNAPPY))
    assert [record.offset for record in records(entry)] == [10, 14]


@pytest.mark.spec("REC-31", "REC-32")
def test_a_set_of_create_time_has_the_largest_timestamp_and_its_messages_their_own() -> None:
    some = [NewRecord(b"", b"", timestamp=t) for t in (5, 9, 7)]
    (entry,) = entries(build(some, magic=1, codec=Codec.GZIP))
    assert (entry.timestamp, entry.timestamp_type) == (9, 0)
    assert [record.timestamp for record in records(entry)] == [5, 9, 7]


@pytest.mark.spec("REC-10", "REC-31", "REC-32", "REC-33")
def test_a_set_of_append_time_gives_its_time_to_all_messages() -> None:
    some = [NewRecord(b"", b"", timestamp=t) for t in (5, 9, 7)]
    (entry,) = entries(build(some, magic=1, codec=Codec.GZIP, append_time=1_000))
    assert (entry.timestamp, entry.timestamp_type) == (1_000, 1)
    assert [record.timestamp for record in records(entry)] == [1_000] * 3


@pytest.mark.spec("REC-05")
@pytest.mark.parametrize("magic", MAGICS)
def test_the_checksum_covers_all_that_follows_it(magic: int) -> None:
    data = build(ONE, magic=magic)
    for at in (17, len(data) - 1):
        damaged = bytearray(data)
        damaged[at] ^= 0x80
        assert [entry.crc_ok for entry in entries(damaged)] == [False]


@pytest.mark.spec("REC-02")
@pytest.mark.parametrize("magic", MAGICS)
def test_messages_lie_back_to_back_and_a_cut_tail_is_left_out(magic: int) -> None:
    data = build(ONE * 3, magic=magic)
    size = len(data) // 3
    assert [(e.position, e.size, e.offset) for e in entries(memoryview(data))] == [
        (at * size, size, at) for at in range(3)
    ]
    for cut in range(1, size):
        assert len(list(entries(data[:-cut]))) == 2


@pytest.mark.spec("REC-07", "REC-09")
@pytest.mark.parametrize("magic", MAGICS)
def test_a_message_below_the_smallest_size_is_corrupt(magic: int) -> None:
    smallest = build([NewRecord(None, None)], magic=magic)
    assert len(smallest) == MIN_SIZE[magic] + 12
    assert len(list(entries(smallest))) == 1
    shorter = bytearray(smallest)
    shorter[8:12] = (MIN_SIZE[magic] - 1).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="size"):
        list(entries(shorter))


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("length", [-2, 100, 2])
def test_a_key_that_does_not_fit_is_corrupt(magic: int, length: int) -> None:
    data = bytearray(build(ONE, magic=magic))
    at = 12 + (14 if magic else 6)
    data[at : at + 4] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch):
        list(entries(data))


def test_other_formats_and_codecs_are_corrupt_here() -> None:
    data = bytearray(build(ONE, magic=1))
    data[16] = 2
    with pytest.raises(CorruptBatch, match="magic 2"):
        list(entries(data))
    data[16], data[17] = 1, 4  # zstd came with v2
    with pytest.raises(CorruptBatch, match="codec 4"):
        list(entries(data))


def test_a_set_that_holds_a_set_or_another_format_is_corrupt() -> None:
    inner = build(ONE, magic=1, codec=Codec.GZIP)
    for content in (inner, build(ONE, magic=0), build(ONE, magic=1)[:-1], b""):
        (entry,) = entries(build(ONE, magic=1, codec=Codec.GZIP))
        bad = entry._replace(value=compress(Codec.GZIP, content))
        with pytest.raises(CorruptBatch):
            records(bad)
    with pytest.raises(CorruptBatch):
        records(entry._replace(value=None))


def test_a_bomb_in_a_set_is_refused() -> None:
    (entry,) = entries(build([NewRecord(None, bytes(100_000))], magic=1, codec=Codec.LZ4))
    with pytest.raises(CorruptBatch):
        records(entry, max_bytes=50_000)


@pytest.mark.spec("REC-28")
def test_old_lz4_writers_are_understood() -> None:
    (entry,) = entries(build(ONE, magic=0, codec=Codec.LZ4))
    assert entry.value is not None
    broken = bytearray(entry.value)
    broken[6] ^= 0xFF
    assert records(entry._replace(value=bytes(broken))) == records(entry)
    (newer,) = entries(build(ONE, magic=1, codec=Codec.LZ4))
    assert newer.value is not None
    with pytest.raises(CorruptBatch):
        records(newer._replace(value=bytes(newer.value[:6] + b"?" + newer.value[7:])))
