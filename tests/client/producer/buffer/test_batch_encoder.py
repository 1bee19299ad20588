"""Batches to bytes."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.buffer.batch import Batch, ProducerStamp
from ottla.client.producer.buffer.batch_encoder import (
    NATIVE_MIN_RECORDS,
    Encoder,
    encode_plain,
    load_native,
)
from ottla.model.clock import MonoMs
from ottla.protocol.records.batch import crc_ok, read_header
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import read_records
from tests.client.producer.rig import STAMP_NS, TP, batch

RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2),
        st.integers(0, 2**40),
    ),
    min_size=1,
    max_size=40,
)
native = load_native()


@given(RECORDS, st.sampled_from(list(Codec)))
def test_the_kernel_and_plain_python_write_the_same_records(
    records: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]],
    codec: Codec,
) -> None:
    made = Batch(TP, 1 << 20, 0, MonoMs(0), threading.Lock())
    for key, value, headers, stamp_ms in records:
        made.append(key, value, tuple(headers), stamp_ms * 1_000_000)
    made.close()
    assert native is not None
    quick, slow = native(made, codec, None), encode_plain(made, codec, None)
    assert records == [
        (each.key, each.value, list(each.headers), each.timestamp) for each in read_records(quick)
    ]
    assert list(read_records(slow)) == list(read_records(quick))
    if codec is Codec.NONE:
        assert bytes(quick)[21:43] == bytes(slow)[21:43]
        assert bytes(quick)[61:] == bytes(slow)[61:]


@pytest.mark.spec("TXN-34")
@pytest.mark.parametrize("count", [1, NATIVE_MIN_RECORDS])
def test_a_batch_carries_its_stamp_also_after_it_got_another(count: int) -> None:
    encoder = Encoder("none", None)
    encoder.native = native
    made = batch(*[b"v"] * count)
    made.stamp, made.transactional = ProducerStamp(7, 1, 40), True
    encoder.encode(made)
    assert made.encoded is not None
    header = read_header(made.encoded)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 40)
    assert header.is_transactional
    assert crc_ok(made.encoded)
    made.stamp = ProducerStamp(7, 2, 0)
    encoder.encode(made)
    header = read_header(made.encoded)
    assert (header.producer_epoch, header.base_sequence, header.count) == (2, 0, count)
    assert crc_ok(made.encoded)


@pytest.mark.spec("MON-24")
@pytest.mark.parametrize("codec", Codec)
def test_a_batch_knows_its_size_before_compression(codec: Codec) -> None:
    made = batch(*[b"x" * 100] * 30)
    Encoder(codec.name.lower(), None).encode(made)
    if codec is Codec.NONE:
        assert made.plain_bytes == made.size
    else:
        assert made.size < made.plain_bytes
        assert made.plain_bytes == pytest.approx(30 * 110, rel=0.1)


def test_without_idempotence_a_batch_names_no_producer() -> None:
    made = batch()
    Encoder("gzip", 1).encode(made)
    assert made.encoded is not None
    header = read_header(made.encoded)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.codec is Codec.GZIP
    assert crc_ok(made.encoded)


@pytest.mark.spec("PRD-53")
def test_a_batch_is_split_into_parts_no_larger_than_asked_in_the_same_order() -> None:
    whole = batch(*[b"%d" % number * 30 for number in range(40)])
    whole.ordinal, whole.attempts = (5,), 2
    encoder = Encoder("zstd", None)
    encoder.encode(whole)
    parts = encoder.split(whole, 500)
    assert len(parts) > 2
    assert [value for part in parts for value in part.values] == whole.values
    assert {part.timestamps[0] for part in parts} == {STAMP_NS}
    assert all(part.is_closed and part.size <= 500 for part in parts)
    assert [part.ordinal for part in parts] == [(5, at) for at in range(len(parts))]
    assert sum(part.reserved for part in parts) == whole.reserved
    assert [part.attempts for part in parts] == [2] * len(parts)
