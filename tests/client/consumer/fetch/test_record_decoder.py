from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.fetch.record_decoder import (
    Decode,
    decode_native,
    decode_plain,
    end_of,
)
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.record import NewRecord
from tests.client.consumer.batches import TIME, batch, marker, transactional, view

BOTH = pytest.mark.parametrize("decode", [decode_plain, decode_native])


@BOTH
@pytest.mark.spec("CON-16", "CON-08")
def test_rows_have_every_field(decode: Decode) -> None:
    data = build(
        [
            NewRecord(b"k", b"v", (("h", b"1"), ("n", None)), TIME),
            NewRecord(None, None, (), TIME + 1),
        ],
        base_offset=7,
        leader_epoch=3,
        codec=Codec.ZSTD,
    )
    rows = decode(view(data), 0, (), check_crc=True).rows
    assert list(rows.offsets) == [7, 8]
    assert list(rows.timestamps) == [TIME, TIME + 1]
    assert list(rows.types) == [0, 0]
    assert list(rows.keys) == [b"k", None]
    assert list(rows.values) == [b"v", None]
    assert [tuple(map(tuple, each)) for each in rows.headers] == [(("h", b"1"), ("n", None)), ()]
    assert list(rows.epochs) == [3, 3]


@BOTH
def test_records_before_the_position_are_left_out(decode: Decode) -> None:
    data = view(batch(0, 5), batch(5, 5))
    assert list(decode(data, 3, (), check_crc=True).rows.offsets) == [3, 4, 5, 6, 7, 8, 9]


@BOTH
@pytest.mark.spec("CON-18")
def test_markers_and_what_was_aborted_are_left_out(decode: Decode) -> None:
    data = view(
        transactional(0, 2, producer_id=1),
        transactional(2, 2, producer_id=2),
        marker(4, 1, commit=False),
        marker(5, 2, commit=True),
        transactional(6, 1, producer_id=1),
        marker(7, 1, commit=True),
    )
    assert list(decode(data, 0, [(1, 0)], check_crc=True).rows.offsets) == [2, 3, 6]
    assert list(decode(data, 0, (), check_crc=True).rows.offsets) == [0, 1, 2, 3, 6]


@BOTH
def test_a_tail_that_is_cut_short_is_left_for_the_next_fetch(decode: Decode) -> None:
    whole = batch(0, 3)
    found = decode(view(whole, batch(3, 3)[:-5]), 0, (), check_crc=True)
    assert list(found.rows.offsets) == [0, 1, 2]
    assert (found.consumed, found.more) == (len(whole), False)


@BOTH
def test_what_comes_before_a_bad_batch_comes_first(decode: Decode) -> None:
    good, bad = batch(0, 3), bytearray(batch(3, 3))
    bad[-2] ^= 1
    found = decode(view(good, bytes(bad)), 0, (), check_crc=True)
    assert list(found.rows.offsets) == [0, 1, 2]
    assert found.more
    rest = view(good, bytes(bad))[found.consumed :]
    with pytest.raises(CorruptBatch, match="checksum"):
        decode(rest, 0, found.aborted, check_crc=True)
    unchecked = decode(rest, 0, (), check_crc=False).rows
    assert list(unchecked.offsets) == [3, 4, 5], "unless nobody wants it checked"


@BOTH
def test_what_was_aborted_is_remembered_for_the_rest(decode: Decode) -> None:
    bad = bytearray(batch(2, 1))
    bad[-2] ^= 1
    data = view(transactional(0, 1, producer_id=1), batch(1, 1), bytes(bad))
    found = decode(data, 0, [(1, 0)], check_crc=True)
    assert list(found.rows.offsets) == [1]
    pending_callbacks = view(transactional(3, 1, producer_id=1), batch(4, 1))
    assert list(decode(pending_callbacks, 0, found.aborted, check_crc=True).rows.offsets) == [4]


@BOTH
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_are_read(decode: Decode, magic: int) -> None:
    data = legacy.build([NewRecord(b"k", b"v", (), TIME)], magic=magic, base_offset=4)
    rows = decode(view(data), 0, (), check_crc=True).rows
    assert (list(rows.offsets), list(rows.values)) == ([4], [b"v"])
    assert list(rows.types) == ([-1] if magic == 0 else [0])
    assert end_of(view(data)) == (5, -1)


def test_the_end_is_after_the_last_whole_batch() -> None:
    data = view(batch(0, 5), batch(9, 2, leader_epoch=4), batch(20, 1)[:-1])
    assert end_of(data) == (11, 4)
    assert end_of(memoryview(b"")) == (-1, -1)
    with pytest.raises(CorruptBatch, match="length -12"):
        end_of(memoryview(bytes(8) + b"\xff\xff\xff\xf4" + bytes(50)))


VALUES = st.none() | st.binary(max_size=20)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=20), st.sampled_from(Codec))
def test_both_decoders_agree(pairs: list[tuple[bytes | None, bytes | None]], codec: Codec) -> None:
    data = view(
        build([NewRecord(key, value, (), TIME) for key, value in pairs], codec=codec),
        batch(len(pairs), 2),
    )
    plain = decode_plain(data, 0, (), check_crc=True).rows
    native = decode_native(data, 0, (), check_crc=True).rows
    assert [list(column) for column in plain] == [list(column) for column in native]


FEW_RECORDS = """
import sys
from ottla.client.consumer.fetch.record_decoder import PLAIN_BYTES, decoder
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord

few = memoryview(bytes(build([NewRecord(b"k", b"v", timestamp=1)])))
many = memoryview(bytes(build([NewRecord(b"k", bytes(PLAIN_BYTES), timestamp=1)])))
before = decoder()(few, 0, (), check_crc=True).rows
assert "numba" not in sys.modules, "the kernels were loaded for a few records"
assert list(decoder()(many, 0, (), check_crc=True).rows.offsets) == [0]
assert "numba" in sys.modules
after = decoder()(few, 0, (), check_crc=True).rows
assert [list(one) for one in before[:5]] == [list(one) for one in after[:5]]
"""


def test_a_program_that_reads_a_few_records_does_not_load_the_kernels() -> None:
    pytest.importorskip("numba")
    subprocess.run([sys.executable, "-c", FEW_RECORDS], check=True, timeout=100)
