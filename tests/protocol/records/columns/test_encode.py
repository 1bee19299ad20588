"""Columns and lists become the very batches that plain Python builds."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import UserError
from ottla.protocol.records.batch import build, crc_ok, read_header, stamp, walk
from ottla.protocol.records.columns.checksum import IS_QUICK
from ottla.protocol.records.columns.decode import TYPES, decode_batches
from ottla.protocol.records.columns.encode import Encoded, checksum_by, encode_batches
from ottla.protocol.records.columns.write_kernels import UNKNOWN
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord, read_records
from tests.protocol.records.columns.batches import buffers, codecs
from tests.protocol.records.samples import new_records

record_lists = st.lists(new_records, min_size=1, max_size=20)


def fields(records: list[NewRecord]) -> tuple[list[Any], list[Any], list[Any], list[int]]:
    return (
        [record.key for record in records],
        [record.value for record in records],
        [record.headers for record in records],
        [record.timestamp for record in records],
    )


def arrows(records: list[NewRecord]) -> tuple[Any, Any, Any, Any]:
    key, value, headers, times = fields(records)
    pairs = [[{"key": name, "value": item} for name, item in row] for row in headers]
    return (
        pa.array(key, pa.binary()),
        pa.array(value, pa.binary()),
        pa.array(pairs, TYPES["headers"]),
        pa.array(times, pa.timestamp("ms")),
    )


def records_in(batch: Encoded) -> list[NewRecord]:
    return [
        NewRecord(record.key, record.value, record.headers, record.timestamp)
        for record in read_records(batch.data)
    ]


@pytest.mark.spec("REC-13", "REC-21", "REC-22", "REC-23", "REC-24", "REC-39")
@given(record_lists, codecs, st.sampled_from([fields, arrows]))
def test_a_batch_is_byte_for_byte_what_plain_python_builds(
    records: list[NewRecord], codec: Codec, form: Any
) -> None:
    (batch,) = encode_batches(*form(records), codec=codec)
    assert bytes(batch.data) == build(records, codec=codec)
    assert (batch.records, batch.partition) == (len(records), 0)
    assert batch.max_timestamp == max(record.timestamp for record in records)


@given(record_lists, codecs)
def test_another_implementation_reads_it(records: list[NewRecord], codec: Codec) -> None:
    records = [record._replace(timestamp=record.timestamp + 1) for record in records]
    (batch,) = encode_batches(*fields(records), codec=codec)
    other = DefaultRecordBatch(bytes(batch.data))
    assert other.validate_crc()
    found = [NewRecord(r.key, r.value, tuple(r.headers), r.timestamp) for r in other]
    assert found == records


@given(record_lists, st.integers(61, 900))
def test_batches_are_cut_at_the_limit_and_lose_nothing(
    records: list[NewRecord], limit: int
) -> None:
    batches = encode_batches(*fields(records), max_batch_bytes=limit)
    assert [record for batch in batches for record in records_in(batch)] == records
    for batch in batches:
        assert crc_ok(batch.data)
        assert batch.records == 1 or len(batch.data) <= limit
    for batch, after in pairwise(batches):
        assert len(batch.data) + len(after.data) > limit, "the two would have fitted into one"


@given(st.lists(st.tuples(new_records, st.integers(0, 5)), max_size=30), st.integers(200, 900))
def test_rows_are_shared_out_in_their_own_order(
    shares: list[tuple[NewRecord, int]], limit: int
) -> None:
    records, partitions = [record for record, _ in shares], [number for _, number in shares]
    batches = encode_batches(*fields(records), partitions=partitions, max_batch_bytes=limit)
    found: dict[int, list[NewRecord]] = {}
    for batch in batches:
        found.setdefault(batch.partition, []).extend(records_in(batch))
    assert list(found) == sorted(set(partitions))
    for partition, kept in found.items():
        assert kept == [record for record, number in shares if number == partition]


@given(buffers(max_batches=2))
def test_what_was_decoded_can_be_encoded_again(buffer: bytes) -> None:
    columns = decode_batches(buffer, want=("key", "value", "headers", "timestamp")).batch
    batches = encode_batches(*(columns[at] for at in range(4)))
    again = decode_batches(b"".join(batch.data for batch in batches), want=columns.schema.names)
    assert again.batch.equals(columns)


def test_a_slice_of_a_table_is_its_rows_alone() -> None:
    table = pa.table({"k": [b"a", None, b"c", b"d"], "v": ["1", "22", None, "4"]})
    part = pa.concat_tables([table.slice(1, 2), table.slice(3)])
    (batch,) = encode_batches(part["k"], part["v"], now_ms=7)
    assert records_in(batch) == [
        NewRecord(None, b"22", (), 7),
        NewRecord(b"c", None, (), 7),
        NewRecord(b"d", b"4", (), 7),
    ]


@pytest.mark.parametrize("column", [[], pa.array([], pa.binary()), None])
def test_no_rows_are_no_batches(column: Any) -> None:
    assert encode_batches(None, column) == []
    assert encode_batches(None, column, partitions=[]) == []


def test_a_row_larger_than_the_limit_is_a_batch_of_its_own() -> None:
    batches = encode_batches(None, [b"a", bytes(500), b"b"], max_batch_bytes=200)
    assert [batch.records for batch in batches] == [1, 1, 1]


def test_a_record_larger_than_any_batch_is_refused_before_it_is_written() -> None:
    nothing = pa.py_buffer(np.zeros(2**31, np.uint8))  # memory that is not touched is not taken
    ends = pa.py_buffer(np.array([0, 2**31], np.int64))
    huge = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, nothing])
    with pytest.raises(UserError, match="record of 2147483"):
        encode_batches(None, huge)


@pytest.mark.spec("REC-20")
@pytest.mark.parametrize("codec", Codec)
def test_a_batch_left_unfinished_is_finished_by_its_stamp(codec: Codec) -> None:
    (batch,) = encode_batches([b"k"], [b"v"], codec=codec, now_ms=5, finish=False)
    assert not crc_ok(batch.data)
    stamp(batch.data, producer_id=9, producer_epoch=1, base_sequence=4, transactional=True)
    assert bytes(batch.data) == build(
        [NewRecord(b"k", b"v", (), 5)], codec=codec, transactional=True,
        producer_id=9, producer_epoch=1, base_sequence=4,
    )  # fmt: skip


def test_all_batches_of_a_call_may_be_sent_as_they_lie() -> None:
    batches = encode_batches(None, [b"x" * 50] * 100, max_batch_bytes=1000)
    whole = b"".join(batch.data for batch in batches)
    assert [header.count for _, header in walk(whole)] == [batch.records for batch in batches]
    assert read_header(batches[0].data).size == len(batches[0].data)


@pytest.mark.parametrize("partitions", [[0], [0, -1], [0, 1, 2]])
def test_partitions_that_do_not_fit_the_rows_are_refused(partitions: list[int]) -> None:
    with pytest.raises(UserError, match="partitions: expected"):
        encode_batches(None, [b"a", b"b"], partitions=partitions)


def test_an_arrow_array_whose_rows_overlap_is_refused() -> None:
    offsets = np.array([0, 3, 2, 3], np.int32)
    bad = pa.Array.from_buffers(pa.binary(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")])
    with pytest.raises(UserError, match="offsets decrease"):
        encode_batches(None, bad)


@pytest.mark.parametrize("offsets", [[0, 99, 3], [0, -1, 3], [0, 2**31 - 1, 3]])
@pytest.mark.parametrize("partitions", [None, [1, 0]])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_an_arrow_array_with_a_row_outside_its_data_is_refused(
    offsets: list[int], partitions: list[int] | None, kind: Any
) -> None:
    ends = pa.py_buffer(np.array(offsets, np.int32 if kind == pa.binary() else np.int64))
    bad = pa.Array.from_buffers(kind, 2, [None, ends, pa.py_buffer(b"abc")])
    with pytest.raises(UserError, match="offsets decrease"):
        encode_batches(None, bad, partitions=partitions)


def test_rows_that_lie_over_each_other_are_refused_before_the_room_is_used_up() -> None:
    """In an order in which the row that goes back comes last, and never if it is null."""
    offsets = np.array([0, 3000, 0, 3000, 0, 3000], np.int32)
    present = np.packbits([1, 0, 1, 0, 1], bitorder="little")
    for buffer in (None, pa.py_buffer(present)):
        buffers = [buffer, pa.py_buffer(offsets), pa.py_buffer(bytes(3000))]
        bad = pa.Array.from_buffers(pa.binary(), 5, buffers)
        with pytest.raises(UserError, match="offsets decrease"):
            encode_batches(None, bad, partitions=[0, 1, 0, 1, 0])


@pytest.mark.parametrize("form", [pa.binary(), pa.large_binary(), pa.string()])
def test_fields_of_every_size_are_copied_whole(form: Any) -> None:
    sizes = [*range(130), 479, 480, 481, 511, 512, 513, 544, 5_000]
    values = [bytes(33 + (size + at) % 90 for at in range(size)) for size in sizes]
    keys = [
        None if size % 7 == 0 else value[::-1] for size, value in zip(sizes, values, strict=True)
    ]
    records = [NewRecord(key, value, (), 5) for key, value in zip(keys, values, strict=True)]
    columns = (pa.array(each, pa.binary()).cast(form) for each in (keys, values))
    (batch,) = encode_batches(*columns, now_ms=5)
    assert bytes(batch.data) == build(records)


@pytest.mark.parametrize("limit", [1, 61, 70, 100, 122, 123, 200])
def test_there_is_room_for_as_many_batches_as_a_small_limit_makes(limit: int) -> None:
    values = [b"x" * (row % 60) for row in range(300)]
    batches = encode_batches(
        None, pa.array(values), max_batch_bytes=limit, partitions=[row % 3 for row in range(300)]
    )
    assert [each.records == 1 or len(each.data) <= limit for each in batches] == [True] * len(
        batches
    )
    found = [record.value for each in batches for record in records_in(each)]
    assert found == [value for part in range(3) for value in values[part::3]]


@pytest.mark.skipif(not IS_QUICK, reason="this processor has no instruction for checksums")
@pytest.mark.parametrize("rows", [1, 3, 5_000])
def test_a_batch_is_stamped_with_a_checksum_that_only_looks_at_its_header(rows: int) -> None:
    values = pa.array([b"%0100d" % row for row in range(rows)])
    for batch in encode_batches(None, values, max_batch_bytes=200_000, finish=False):
        quick = partial(checksum_by, batch.section_checksum)
        stamp(batch.data, producer_id=7, producer_epoch=1, base_sequence=5, checksum=quick)
        assert crc_ok(batch.data)


def test_what_is_compressed_has_no_checksum_of_its_records_yet() -> None:
    (batch,) = encode_batches(None, pa.array([b"v"]), codec=Codec.ZSTD)
    assert batch.section_checksum == UNKNOWN
    assert crc_ok(batch.data)
